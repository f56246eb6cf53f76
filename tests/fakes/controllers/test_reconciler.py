"""The frame of the controllers: retries, and what ends one."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from controller_cluster import until

from fakes.controllers.controller import LONGEST_RETRY_S, Reconciler, retry_delay_s
from fakes.controllers.queue import WorkQueue
from harness.kube.port import ApiError, Conflict

pytestmark = pytest.mark.looptime


async def test_errors_of_single_calls_are_tried_again():
    trouble = [ApiError(500, "InternalError", "no"), Conflict(409, "Conflict", "behind"), ConnectionError("reset")]
    seen: list[tuple[str, float]] = []

    async def reconcile(key: str) -> None:
        seen.append((key, asyncio.get_running_loop().time()))
        if key == "a" and trouble:
            raise trouble.pop()

    loop: Reconciler[str] = Reconciler(reconcile)
    running = asyncio.create_task(loop.run())
    loop.queue.add("a")
    loop.queue.add("b")
    await until(lambda: [k for k, _ in seen].count("a") == 4)
    assert [k for k, _ in seen][:2] == ["a", "b"]  # a failing key does not hold up the others
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_a_defect_ends_the_controller():
    async def reconcile(key: str) -> None:
        raise KeyError(key)

    loop: Reconciler[str] = Reconciler(reconcile)
    loop.queue.add("a")
    with pytest.raises(KeyError):
        await loop.run()


def test_retries_slow_down_to_a_bound():
    delays = [retry_delay_s(n) for n in range(20)]
    assert delays == sorted(delays)
    assert delays[-1] == LONGEST_RETRY_S


async def test_waiting_for_the_rest_of_a_delay_does_not_spin():
    """A timer may fire a hair early; a controller that waits for what is left must not do so for ever."""
    queue: WorkQueue[str] = WorkQueue()
    loop = asyncio.get_running_loop()
    due_s, turns = loop.time() + 0.1 + 1e-9, 0
    queue.add("a")
    while True:
        await queue.get()
        turns += 1
        assert turns < 5
        if loop.time() >= due_s:
            return
        queue.add_after("a", due_s - loop.time())
