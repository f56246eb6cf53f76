"""There was no load."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    return Case(Story().build(), ("no request was planned",), exercised=0)
