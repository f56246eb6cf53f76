"""Waiting for an observed fact, with a deadline on the loop's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from harness.kube.port import ApiError

T = TypeVar("T")


class TookTooLong(TimeoutError):
    """The fact did not come in time. ``last_error`` is why the last look failed, None when it succeeded."""

    def __init__(self, within_s: float, last_error: str | None) -> None:
        super().__init__(f"not within {within_s:.1f} s" + (f"; last look: {last_error}" if last_error else ""))
        self.within_s = within_s
        self.last_error = last_error


async def until(look: Callable[[], Awaitable[T | None]], within_s: float, poll_s: float) -> T:
    """What ``look`` returns once it is not None. A look that cannot reach the server is tried again until the deadline:
    servers are hard to reach just when a fault is on."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    last_error: str | None = "no answer"
    while True:
        found: T | None = None
        limit = asyncio.timeout_at(deadline)
        try:
            async with limit:
                found = await look()
            last_error = None
        except (OSError, ApiError) as error:  # A timeout is an OSError, ours as well as the client's.
            if limit.expired():
                raise TookTooLong(within_s, last_error) from None  # cut short, it says nothing new
            if isinstance(error, ApiError) and 400 <= error.status < 500 and error.status != 429:
                raise
            last_error = str(error) or type(error).__name__
        if found is not None:
            return found
        remaining = deadline - loop.time()
        if remaining <= 0:
            raise TookTooLong(within_s, last_error)
        await asyncio.sleep(min(poll_s, remaining))
