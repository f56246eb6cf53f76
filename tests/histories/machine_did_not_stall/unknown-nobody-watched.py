"""Nothing shows that the watchdog ran."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    return Case(Story().build(), ("nobody watched",), exercised=0)
