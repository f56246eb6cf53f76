"""No load was planned."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    return Case(Story().build(), ("no load was planned",), exercised=0)
