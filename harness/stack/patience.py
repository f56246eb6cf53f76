"""Waits until nothing is wrong with what is coming up, or says what still is; and does not wait for the dead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from harness.errors import TargetError
from harness.kube.port import ApiError

WITHIN_S, LOOK_S = 30.0, 0.05
ALIVE_LOOK_S = 0.1
T = TypeVar("T")
Look = Callable[[], Awaitable[str]]
"""What is still wrong, in words; empty when nothing is."""


async def until_nothing_is_wrong(look: Look, failure: str, within_s: float = WITHIN_S, look_s: float = LOOK_S) -> None:
    """Looks every ``look_s``; TargetError with what was wrong last after ``within_s``. An API server that refuses, or
    is not reached, is one of the things that may be wrong."""
    wrong = ""
    try:
        async with asyncio.timeout(within_s):
            while wrong := await _said(look):
                await asyncio.sleep(look_s)
    except TimeoutError:
        raise TargetError(f"{failure} within {within_s:g} s: {wrong}") from None


async def unless(check: Callable[[], None], work: Coroutine[Any, Any, T], look_s: float = ALIVE_LOOK_S) -> T:
    """What ``work`` returns. Meanwhile ``check`` is asked whether those live who have to do their part in it; what it
    raises ends the work."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            check()
            await asyncio.wait({task}, timeout=look_s)
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _said(look: Look) -> str:
    try:
        return await look()
    except (ApiError, ConnectionError) as error:
        return str(error) or type(error).__name__
