"""The load process was stopped for four seconds; the machine ran on."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(0, 100, 1, ("llm-a",))
    story.sample(104, "load", "cpu_ratio", 0.2)
    for behind in range(40):
        story.request(100 + behind, "llm-a", lag_ms=4000.0 - behind * 100)
    return Case(
        story.build(),
        ("not offered as planned", "4000 ms at most", "more of them would not help"),
        ("requests:100", "requests:101"),
    )
