"""The frame of every controller: informers fill a queue of keys, one coroutine brings the world in line key by key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from fakes.controllers.informer import Informer
from fakes.controllers.queue import WorkQueue
from harness.kube.port import ApiError

K = TypeVar("K", bound=Hashable)

FIRST_RETRY_S = 0.005
LONGEST_RETRY_S = 1.0


class Reconciler(Generic[K]):
    """Works off ``queue``. A key whose reconcile met an API error is tried again, later and later; what is no API error
    is a defect of ours and ends the controller."""

    def __init__(self, reconcile: Callable[[K], Awaitable[None]]) -> None:
        self.queue: WorkQueue[K] = WorkQueue()
        self._reconcile = reconcile
        self._failures: dict[K, int] = {}

    async def run(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                await self._reconcile(key)
            except (ApiError, ConnectionError):
                # Also a Conflict: the cache was behind, and will have caught up by then.
                failures = self._failures.get(key, 0)
                self._failures[key] = failures + 1
                self.queue.add_after(key, retry_delay_s(failures))
            else:
                self._failures.pop(key, None)


def retry_delay_s(failures: int) -> float:
    """Doubling, in seconds of the event loop."""
    return min(LONGEST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(failures, 30))


async def run_controller(informers: Sequence[Informer], *workers: Callable[[], Awaitable[None]]) -> None:
    """Starts the workers once every informer has its first list; runs until cancelled."""

    async def work(worker: Callable[[], Awaitable[None]]) -> None:
        await worker()

    async with asyncio.TaskGroup() as tasks:
        for informer in informers:
            tasks.create_task(informer.run())
        for informer in informers:
            await informer.synced()
        for worker in workers:
            tasks.create_task(work(worker))
