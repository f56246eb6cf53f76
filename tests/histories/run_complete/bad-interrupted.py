"""Ctrl-C."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(ended="interrupted", info={"ended_detail": "interrupted by SIGINT"})
    return Case(story.build(), ("was interrupted", "SIGINT"), numbers={"ended": "interrupted"})
