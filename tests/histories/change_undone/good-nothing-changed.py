"""A run that changes nothing has nothing to undo."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    return Case(Story(info={"undo_planned": 0}).build(), ("changed nothing",))
