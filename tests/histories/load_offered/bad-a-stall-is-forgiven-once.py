"""The same stall was recorded twice; it explains a lateness of its own length, not of twice that."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(0, 90, 1, ("llm-a",))
    for _ in range(2):
        story.stall(105, 0.4)
    story.traffic(100, 102, 1, ("llm-a",), lag_ms=700.0)
    return Case(story.build(), ("sends over the limit",), numbers={"sent_late": 2, "lag_ms_max": 300.0})
