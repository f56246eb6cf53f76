"""An instance became a Node in time; the Node was deleted much later, and its kubelet registered it anew."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(time_scale=1)
    story.node("on-demand-1")
    story.deployment(2)
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-2", 101, refused_s=102, bound_s=160, running_s=170, ready_s=195)
    story.claim("on-demand-2", 104, 106)
    story.node("on-demand-2", 140, 150)
    story.node_gone("on-demand-2", 400)
    story.node("on-demand-2", 410, 412)
    return Case(story.build(), (), (), {"unregistered_max": 0}, None, {"instances_without_node": 0})
