"""Two gangs of four arrive when four GPUs are free; each takes two of them and waits for the others' for ever."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    for name in ("gang-b", "gang-c"):
        story.group(name, 4, 300)
        for n in range(4):
            node = "on-demand-1" if n < 2 else None
            story.pod(f"{name}-{n}", node, 300.5, refused_s=None if node else 301, bound_s=301, app=name, group=name)
    story.event(500, "gang-b-2", "FailedScheduling", "0/1 nodes are available")
    says = ("gang-b held 2 of the 4", "gang-c held 2 of the 4", "deadlock: gang-b and gang-c each held a part")
    return Case(story.build(), says, (), {"atomicity_s_max": 60}, 2)
