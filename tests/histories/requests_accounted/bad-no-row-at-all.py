"""Requests were planned, and the load recorded nothing."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    return Case(Story(info={"planned": 3}).build(), ("3 were planned, but 0 have a row",))
