"""Each change was undone."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    return Case(Story(info={"undo_planned": 2}).build(), ("2 changes", "all undone"), exercised=2)
