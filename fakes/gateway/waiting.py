"""Requests that wait at the gateway for a replica with room, first come, first served, up to a limit."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from fakes.gateway.router import Backend


@dataclass(slots=True)
class Waiting:
    refused: Collection[Backend]
    hashes: Sequence[int]
    turn: asyncio.Future[Backend]


class GatewayQueue:
    """``reserve`` finds a replica with room and counts the request there, or returns None."""

    def __init__(self, longest: int, reserve: Callable[[Collection[Backend], Sequence[int]], Backend | None]) -> None:
        self._longest = longest
        self._reserve = reserve
        self._queue: deque[Waiting] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def full(self) -> bool:
        return len(self._queue) >= self._longest

    async def turn(self, refused: Collection[Backend], hashes: Sequence[int], within_s: float) -> Backend:
        """Raises TimeoutError when its turn does not come in time."""
        waiting = Waiting(refused, hashes, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        try:
            async with asyncio.timeout(within_s):
                return await waiting.turn
        except BaseException:
            if waiting.turn.done() and not waiting.turn.cancelled():
                waiting.turn.result().in_flight -= 1  # its turn came as it gave up
                self.serve()
            raise
        finally:
            if waiting in self._queue:
                self._queue.remove(waiting)

    def serve(self) -> None:
        """A replica has room again, or there is a new one."""
        while self._queue:
            backend = self._reserve(self._queue[0].refused, self._queue[0].hashes)
            if backend is None:
                return
            waiting = self._queue.popleft()
            if waiting.turn.done():
                backend.in_flight -= 1
            else:
                waiting.turn.set_result(backend)
