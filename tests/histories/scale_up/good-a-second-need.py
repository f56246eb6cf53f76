"""The step's need was answered and over; what was added much later answers a need that came without a planned step."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(length_s=900)
    story.node("on-demand-1")
    story.deployment(1)
    story.hpa()
    story.pod("llm-a", "on-demand-1")
    story.mark(80, "load_step")
    for at_s in range(90, 120, 5):
        story.waiting(at_s, llm_a=9)
    for at_s in range(120, 600, 5):
        story.waiting(at_s, llm_a=0)
    for at_s in range(600, 620, 5):
        story.waiting(at_s, llm_a=9)
    story.scale(620, 2)
    story.pod("llm-b", "on-demand-1", 620.2, running_s=630, ready_s=660)
    story.request(700, "llm-b")
    return Case(story.build(), ("1 added replica served", "within 102.0 s"), (), {"ready_s_max": 200}, 1)
