"""The load process had no core left, so the sends were late by its own work: more processes would have done."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(info={"load_workers": 2})
    story.traffic(0, 100, 1, ("llm-a",))
    for second in range(100, 110):
        story.sample(second, "load", "cpu_ratio", 0.97)
        story.request(second, "llm-a", lag_ms=400.0)
    return Case(
        story.build(),
        ("used up to 97% of a core", "send.workers: 4 (now 2)"),
        numbers={"load_workers": 2, "load_workers_would_do": 4},
    )
