"""How the stories of sizes begin."""

from __future__ import annotations

from story import Story


def one_replica() -> Story:
    """One replica on one node with an autoscaler; the load rises at 80 s."""
    story = Story()
    story.node("on-demand-1")
    story.deployment(1)
    story.hpa()
    story.pod("llm-a", "on-demand-1")
    story.mark(80, "load_step")
    return story
