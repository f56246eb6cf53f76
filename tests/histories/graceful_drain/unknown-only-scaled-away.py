"""The fault hit nothing; the autoscaler taking pods away later does not stand in for it."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage


def case() -> Case:
    story = Story()
    story.node("idle-1")
    story.node("on-demand-1")
    story.deployment(2)
    story.pod("llm-a", "on-demand-1")
    story.pod("llm-b", "on-demand-1")
    story.fault(300, FaultStage.INJECTED, "idle-1")
    story.request(395, "llm-a", lasts_s=20)
    story.scale(400, 1)
    story.evict(400.2, "llm-a", None)
    story.end(420, "llm-a")
    says = ("not put to the test (1 stream on pods that were scaled away)",)
    return Case(story.build(), says, (), {}, 0, {"streams_scaled_away": 1, "streams_lost": 0})
