"""The cluster was not steady when the fault came."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.mark(-1, "steady_state_before", "not_met", "3 of 4 replicas ready")
    return Case(story.build(), ("was not met", "3 of 4 replicas ready"), ("marks:0",))
