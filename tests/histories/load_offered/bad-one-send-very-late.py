"""One send in a thousand, but seconds late: no open loop any more."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(0, 500, 0.5, ("llm-a",))
    story.request(501, "llm-a", lag_ms=1500.0)
    return Case(story.build(), ("1500 ms at most",), ("requests:1000",), numbers={"sent_late": 1})
