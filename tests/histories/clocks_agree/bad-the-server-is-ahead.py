"""The API server makes objects in the future."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story(api_ahead_s=30)
    story.node("on-demand-9", at_s=100)
    return Case(story.build(), ("the API server 30.0 s ahead",))
