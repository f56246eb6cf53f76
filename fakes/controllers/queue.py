"""A work queue as controllers use it: a key waits at most once, and may be added after a delay."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

SHORTEST_DELAY_S = 0.001
"""A timer may fire a hair before its time. Whoever then waits for the rest of it would spin without this."""


class WorkQueue(Generic[K]):
    """First in, first out. A key that is added while it waits is not added twice; one added while it is being worked
    on is worked on again."""

    def __init__(self) -> None:
        self._waiting: dict[K, None] = {}
        self._delayed: dict[K, asyncio.TimerHandle] = {}
        self._filled = asyncio.Event()

    def add(self, key: K) -> None:
        self._waiting[key] = None
        self._filled.set()

    def add_after(self, key: K, delay_s: float) -> None:
        """The earlier of two delays wins. ``delay_s`` is in seconds of the event loop."""
        loop = asyncio.get_running_loop()
        due = loop.time() + max(SHORTEST_DELAY_S, delay_s)
        pending = self._delayed.get(key)
        if pending is not None and pending.when() <= due:
            return
        if pending is not None:
            pending.cancel()
        self._delayed[key] = loop.call_at(due, self._due, key)

    async def get(self) -> K:
        while not self._waiting:
            self._filled.clear()
            await self._filled.wait()
        key = next(iter(self._waiting))
        del self._waiting[key]
        return key

    def _due(self, key: K) -> None:
        self._delayed.pop(key, None)
        self.add(key)
