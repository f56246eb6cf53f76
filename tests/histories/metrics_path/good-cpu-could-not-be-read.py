"""Nobody answers for CPU for two minutes, and the size stays as it was."""

from __future__ import annotations

from cases import Case
from processor_use import unread


def case() -> Case:
    story = unread(scaled_to=None)
    says = ("nothing was read for 120.0 s (12.00 s on the clock), and no replica was taken away meanwhile",)
    return Case(story.build(), says, (), {"seen_s_max": 400, "hole_s_max": 400}, 1, {"scaled_down_blind": 0})
