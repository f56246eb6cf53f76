"""The load process died."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(ended="child_died", info={"ended_detail": "load (Locust) ended with -9"})
    return Case(story.build(), ("a process of the run died", "-9"))
