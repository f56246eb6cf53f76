"""Requests that wait for their turn: first come, first served, or by priority and then by arrival."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakes.vllm.engine import EngineRequest


def _rank(request: EngineRequest) -> tuple[int, float]:
    return request.priority, request.arrived_s


class WaitingQueue:
    def __init__(self, *, by_priority: bool) -> None:
        self._by_priority = by_priority
        self._queue: deque[EngineRequest] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[EngineRequest]:
        return iter(self._queue)

    def add(self, request: EngineRequest) -> None:
        if self._by_priority:
            insort(self._queue, request, key=_rank)
        else:
            self._queue.append(request)

    def put_back(self, request: EngineRequest) -> None:
        """One that was preempted: at the head, or where its priority puts it."""
        if self._by_priority:
            insort(self._queue, request, key=_rank)
        else:
            self._queue.appendleft(request)

    def first(self) -> EngineRequest:
        return self._queue[0]

    def take_first(self) -> EngineRequest:
        return self._queue.popleft()

    def remove(self, request: EngineRequest) -> None:
        self._queue.remove(request)
