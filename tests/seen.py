"""Waits for what a test has to see, and says what never came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

LOOK_S = 0.005


async def until(holds: Callable[[], object], what: str = "what the test waits for", within_s: float = 30.0) -> None:
    """By the loop's time. AssertionError when it does not hold ``within_s``."""
    try:
        async with asyncio.timeout(within_s):
            while not holds():
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise AssertionError(f"not within {within_s:g} s: {what}") from None
