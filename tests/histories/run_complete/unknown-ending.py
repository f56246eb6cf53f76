"""An ending that this version does not know."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    return Case(Story(ended="handed_over").build(), ("'handed_over'", "does not know"))
