"""The probe itself failed."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.mark(-1, "steady_state_before", "error", "connection refused")
    return Case(story.build(), ("could not be evaluated", "connection refused"), ("marks:0",))
