"""How often Python looks for garbage that refers to itself."""

from __future__ import annotations

import gc

YOUNG = 50_000
"""Python's own 700 makes a world of many small objects spend a third of its time on looking, and finding nothing."""


def collect_seldom() -> None:
    """For a process that is a world. Again is no harm."""
    gc.set_threshold(YOUNG, 20, 50)
