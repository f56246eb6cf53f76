"""The planned end."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    return Case(Story().build(), ("planned end",), exercised=1)
