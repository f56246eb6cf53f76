"""No fault is known."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    return Case(Story().build(), ("no planned fault",), exercised=0)
