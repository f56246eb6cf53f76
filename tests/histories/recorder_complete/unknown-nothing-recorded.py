"""The recorder saw nothing."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    return Case(Story().build(), ("saw no object",), exercised=0)
