"""An undo failed."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    info = {"undo_planned": 2, "undo_left": ("cancel_interruption i-spot-1",)}
    return Case(Story(info=info).build(), ("1 of 2 changes", "cancel_interruption i-spot-1"), ("undo",))
