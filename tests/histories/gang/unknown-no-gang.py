"""There was no gang."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    return Case(Story().build(), ("0 gangs",), (), {"atomicity_s_max": 60}, 0)
