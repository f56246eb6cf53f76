"""The run was aborted, and a cut stream before that has no cause in the cluster."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story(ended="aborted")
    story.node("on-demand-1")
    story.pod("llm-a", "on-demand-1")
    story.request(300, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=20)
    return Case(story.build(), ("the run ended early (aborted)", "1 unexplained"), ("requests:0",))
