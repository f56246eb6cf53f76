"""The urgent tenant's answers are late; among those of all others they would not have been enough to tell."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(10, 500, 1, ("llm-a",), tenant="others", priority=0)
    for at_s in range(100, 120):
        story.request(at_s, "llm-a", ttft_ms=4000, lasts_s=50, tenant="urgent", priority=-1)
    says = ("20 requests of tenant urgent of priority -1 in the whole run", "20 of 20 late")
    spec = {"ttft_ms_p95": 3000, "tenant": "urgent", "priority": -1}
    return Case(story.build(), says, (), spec, 20, {"requests": 20})
