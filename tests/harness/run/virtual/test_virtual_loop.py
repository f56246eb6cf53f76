from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from time import monotonic

import pytest

from harness.run.virtual.loop import NothingLeft, TimeStandsStill, VirtualClock, VirtualLoop


def run(main: Callable[[], Awaitable[object]]) -> object:
    async def call() -> object:
        return await main()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(call())


def test_an_hour_passes_at_once_and_timers_fire_in_order() -> None:
    seen: list[tuple[str, float]] = []

    async def sleeper(name: str, s: float) -> None:
        await asyncio.sleep(s)
        seen.append((name, asyncio.get_running_loop().time()))

    async def main() -> None:
        await asyncio.gather(sleeper("late", 3600.0), sleeper("early", 0.25), sleeper("middle", 7.0))

    started_s = monotonic()
    run(main)
    assert monotonic() - started_s < 60
    assert seen == [("early", 0.25), ("middle", 7.0), ("late", 3600.0)]


def test_what_is_left_of_a_wait_is_never_waited_for_in_vain() -> None:
    """A timer that fires a hair early would let this loop turn for ever: its time moves only when it waits."""

    async def main() -> int:
        loop = asyncio.get_running_loop()
        rounds = 0
        for tenths in range(1, 300):
            until_s = tenths / 10 + 1 / 3
            while (left_s := until_s - loop.time()) > 0:
                rounds += 1
                others = [asyncio.ensure_future(asyncio.sleep(0)) for _ in range(3)]
                await asyncio.wait([asyncio.ensure_future(asyncio.sleep(left_s)), *others])
        return rounds

    assert run(main) in range(299, 2 * 299)


@pytest.mark.parametrize("start_s", [0.0, 1e-3, 41.7, 1e5])
def test_a_timer_fires_at_its_time_not_before(start_s: float) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(start_s)
        due_s = loop.time() + 1 / 3
        at_s = loop.create_future()
        loop.call_at(due_s, lambda: at_s.set_result(loop.time()))
        assert due_s <= await at_s <= math.nextafter(due_s, math.inf)

    run(main)


def test_waiting_for_nobody_is_said_and_does_not_hang() -> None:
    with pytest.raises(NothingLeft, match="nothing in this world"):
        run(lambda: asyncio.get_running_loop().create_future())


def test_a_busy_loop_is_said_and_does_not_hang() -> None:
    async def main() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(TimeStandsStill, match="time did not move"):
        run(main)


def test_threads_are_refused() -> None:
    with pytest.raises(RuntimeError, match="no threads"):
        run(lambda: asyncio.to_thread(print))


def test_the_clock_counts_history_time_from_the_loops_beginning() -> None:
    async def main() -> tuple[int, float, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        clock = VirtualClock(loop, time_scale=20)
        await asyncio.sleep(1.5)
        return clock.now_ns(), clock.clock_s(60), clock.scenario_s(1_500_000_000)

    assert run(main) == (1_500_000_000, 3.0, 30.0)


def test_timers_of_one_moment_fire_in_the_order_in_which_they_were_set() -> None:
    async def main() -> list[int]:
        loop, fired = asyncio.get_running_loop(), list[int]()
        timers = [loop.call_at(1.0, fired.append, n) for n in range(50)]
        for timer in timers[::3]:
            timer.cancel()
        await asyncio.sleep(2.0)
        return fired

    assert run(main) == [n for n in range(50) if n % 3]


def test_cancelled_timers_do_not_pile_up() -> None:
    """Each probe has a time limit that it never reaches: an hour of them must not lie about until they are due."""

    async def main() -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        for _ in range(5000):
            loop.call_later(1e6, print).cancel()
            await asyncio.sleep(0.001)
        return len(loop._timers)

    assert run(main) < 500
