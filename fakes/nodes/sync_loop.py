"""The kubelet's one loop over pods. What admission waits for, everything waits for.

A kubelet admits pods one after another, in the same loop that hears of deletions, of exited containers and of probes'
results. While a device plugin does not come back from Allocate, no pod of the node starts, none ends, and none is
reported, though the node says Ready (kubernetes v1.37 pkg/kubelet/kubelet.go, syncLoopIteration).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class SyncLoop:
    def __init__(self) -> None:
        self._admission = asyncio.Lock()
        self._free = asyncio.Event()
        self._free.set()
        self._waiting: list[Callable[[], None]] = []

    @property
    def busy(self) -> bool:
        return not self._free.is_set()

    @asynccontextmanager
    async def admitting(self) -> AsyncIterator[None]:
        async with self._admission:
            self._free.clear()
            try:
                yield
            finally:
                self._free.set()
                waiting, self._waiting = self._waiting, []
                for call in waiting:
                    call()

    async def turn(self) -> None:
        """Comes back once the loop is free: at once, unless an admission is stuck."""
        while self.busy:
            await self._free.wait()

    def call(self, what: Callable[[], None]) -> None:
        """Now, or when the loop is free, in the order of the calls."""
        if self.busy:
            self._waiting.append(what)
        else:
            what()
