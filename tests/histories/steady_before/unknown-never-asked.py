"""Nobody evaluated the hypothesis."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    return Case(Story().build(), ("was not evaluated",), exercised=0)
