"""An event loop whose time leaps to the next timer: nothing is waited for, nothing comes from outside.

Time stands still while callbacks run, so how fast the machine is has no part in what happens. Sockets, threads and
child processes would bring in the real world; they are refused, or never heard of.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from typing import Any, NoReturn

from harness.clock import NS_PER_S


class NothingLeft(RuntimeError):
    """Everybody waits for somebody: no callback is ready and no timer is set."""


class TimeStandsStill(RuntimeError):
    """Somebody goes round and round without ever waiting. With a real clock it would be a busy loop that ends."""


TURNS_MAX = 100_000
"""Turns of the loop within one moment; a run of ours takes some dozens."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Starts at 0."""

    def __init__(self) -> None:
        self._now_s = 0.0
        super().__init__(_Leap(self))
        self.leap(0.0)

    def time(self) -> float:
        return self._now_s

    def leap(self, by_s: float) -> None:
        self._now_s += by_s
        # A timer counts as due when it lies less than the clock's resolution ahead. With a real clock's nanosecond
        # somebody who waits again for what is left of it would wait for ever: time would not have moved.
        self._clock_resolution = math.ulp(self._now_s)

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


class _Leap(selectors.SelectSelector):
    """Where a loop would wait for its sockets, time leaps."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise NothingLeft("nothing in this world will ever happen again: no callback is ready, no timer is set")
        self._turns += 1
        if timeout > 0:
            self._loop.leap(timeout)
            self._turns = 0
        elif self._turns > TURNS_MAX:
            raise TimeStandsStill(f"{TURNS_MAX} turns of the loop at {self._loop.time()} s, and time did not move")
        return []
