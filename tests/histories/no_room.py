"""An autoscaler wants a second replica, and no node has room for it or is ever ordered."""

from __future__ import annotations

from cases import Case
from story import Story


def one_replica() -> Story:
    """It serves on the only GPU that there is."""
    story = Story()
    story.node("on-demand-1", gpus=1)
    story.deployment(1)
    story.pod("llm-a", "on-demand-1")
    return story


def second_never_served(story: Story) -> Case:
    story.mark(80, "load_step")
    story.scale(100, 2)
    story.pod("llm-b", None, 101, refused_s=102)
    story.mark(599, "end")
    story.event(599, "llm-b", "FailedScheduling", "no instance type met all requirements")
    return Case(
        story.build(), ("llm-b never served", "cloud capacity"), (), {"ready_s_max": 200}, 1, {"added_served": 0}
    )
