"""An event loop whose time leaps to the next timer: nothing is waited for, nothing comes from outside.

Time stands still while callbacks run, so how fast the machine is has no part in what happens. Sockets, threads and
child processes would bring in the real world; they are refused, or never heard of.
"""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import Callable
from contextvars import Context
from heapq import heapify, heappop, heappush
from typing import Any, NoReturn, TypeVarTuple, Unpack

from harness.clock import NS_PER_S

Ts = TypeVarTuple("Ts")


class NothingLeft(RuntimeError):
    """Everybody waits for somebody: no callback is ready and no timer is set."""


class TimeStandsStill(RuntimeError):
    """Somebody goes round and round without ever waiting. With a real clock it would be a busy loop that ends."""


TURNS_MAX = 100_000
"""Turns of the loop within one moment; a run of ours takes some dozens, the birth of 1,000 pods some ten thousand."""

CANCELLED_MIN = 100
"""From so many cancelled timers on they are thrown out once they are the half of all."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Starts at 0. Timers of one moment fire in the order in which they were set.

    asyncio's own loop sorts its timers by a comparison written in Python and asks the operating system for news in
    every turn; here neither is needed, and a world spends most of its life between two timers.
    """

    _ready: deque[asyncio.Handle]
    _stopping: bool

    def __init__(self) -> None:
        self._now_s = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._serial = 0
        self._cancelled = 0
        self._turns = 0
        self.turns_max = TURNS_MAX
        self.events = 0
        """How many callbacks have run."""
        super().__init__(_NoNews())

    def time(self) -> float:
        return self._now_s

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """As asyncio's own, without its looks at what this loop never is: in another thread, or debugged."""
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        timer._scheduled = True  # type: ignore[attr-defined]  # asyncio's own: it tells us when such a one is cancelled
        self._serial += 1
        heappush(self._timers, (when, self._serial, timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self._cancelled += 1

    def _run_once(self) -> None:
        """One turn: what is due by now, and nothing that it brings about."""
        timers, ready = self._timers, self._ready
        if self._cancelled > CANCELLED_MIN and self._cancelled * 2 > len(timers):
            timers[:] = [entry for entry in timers if not entry[2]._cancelled]
            heapify(timers)
            self._cancelled = 0
        if ready or self._stopping:
            self._turns += 1
            if self._turns > self.turns_max:
                self._turns = 0  # for what the end of a loop still has to do
                raise TimeStandsStill(f"{self.turns_max} turns of the loop at {self._now_s} s, and time did not move")
        else:
            self._leap()
        while timers and timers[0][0] <= self._now_s:
            timer = heappop(timers)[2]
            timer._scheduled = False  # type: ignore[attr-defined]  # as above
            if not timer._cancelled:
                ready.append(timer)
        due = len(ready)
        self.events += due
        for _ in range(due):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _leap(self) -> None:
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heappop(timers)[2]._scheduled = False  # type: ignore[attr-defined]  # as above
            self._cancelled -= 1
        if not timers:
            raise NothingLeft("nothing in this world will ever happen again: no callback is ready, no timer is set")
        if timers[0][0] > self._now_s:
            self._now_s = timers[0][0]
        self._turns = 0

    def run_in_executor(  # type: ignore[override]  # refuses whatever it is given
        self, executor: Any, func: Any, *args: Any
    ) -> NoReturn:
        raise RuntimeError("there are no threads in virtual time: their results would come at real moments")


class VirtualClock:
    """History time on a virtual loop, from its 0, and the time scale."""

    def __init__(self, loop: VirtualLoop, time_scale: float) -> None:
        self._loop = loop
        self.time_scale = time_scale

    def now_ns(self) -> int:
        return round(self._loop.time() * NS_PER_S)

    def clock_s(self, scenario_s: float) -> float:
        return scenario_s / self.time_scale

    def scenario_s(self, clock_ns: int) -> float:
        return clock_ns / NS_PER_S * self.time_scale


class _NoNews(selectors.SelectSelector):
    """The loop is made with it and never asks it."""

    def select(self, timeout: float | None = None) -> NoReturn:
        raise RuntimeError("nothing comes from outside in virtual time")
