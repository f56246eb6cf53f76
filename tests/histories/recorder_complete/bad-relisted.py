"""A watch was answered 410 and had to list anew."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.gap(100, 130, "Node")
    return Case(story.build(), ("1 gap (Node)", "410 Gone"), ("objects:1",), numbers={"gaps": 1, "blind_s_max": 3.0})
