from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from harness.run.chaos.interrupt import Interruption
from harness.run.chaos.lib import InterruptExecution


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    interruption = Interruption()
    interruption.install()
    yield interruption
    signal.signal(signal.SIGTERM, before[0])
    signal.signal(signal.SIGINT, before[1])


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_after_its_cleanup(number: signal.Signals, interruption: Interruption) -> None:
    cleaned: list[bool] = []

    async def wait() -> None:
        asyncio.get_running_loop().call_soon(send, number)
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    with pytest.raises(InterruptExecution, match=f"{number.name} received"):
        interruption.run(wait())
    assert cleaned == [True]


def test_what_is_not_interrupted_returns_its_value(interruption: Interruption) -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert interruption.run(work()) == 7
    assert interruption.reason is None


def test_shielded_work_goes_on_and_starts_even_afterwards(interruption: Interruption) -> None:
    async def heal() -> str:
        send(signal.SIGTERM)
        await asyncio.sleep(0.01)
        send(signal.SIGINT)
        await asyncio.sleep(0.01)
        return "healed"

    assert interruption.run(heal(), shielded=True) == "healed"
    assert interruption.reason == "SIGTERM received"
    assert interruption.run(heal(), shielded=True) == "healed"
    with pytest.raises(InterruptExecution):
        interruption.raise_if_interrupted()


def test_nothing_else_starts_after_an_interruption(interruption: Interruption) -> None:
    with pytest.raises(InterruptExecution):
        send(signal.SIGTERM)
    with pytest.raises(InterruptExecution):
        interruption.run(asyncio.sleep(1000))


def test_between_waits_the_first_signal_raises_and_a_second_sigterm_does_not(interruption: Interruption) -> None:
    with pytest.raises(InterruptExecution, match="SIGTERM received"):
        send(signal.SIGTERM)
    send(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        send(signal.SIGINT)


def test_a_wait_in_another_thread_ends_as_well(interruption: Interruption) -> None:
    waiting, ended = threading.Event(), threading.Event()

    async def wait() -> None:
        waiting.set()
        await asyncio.sleep(1000)

    def background() -> None:
        with pytest.raises(InterruptExecution):
            interruption.run(wait())
        ended.set()

    thread = threading.Thread(target=background)
    thread.start()
    assert waiting.wait(10)
    with pytest.raises(InterruptExecution):
        send(signal.SIGTERM)
    assert ended.wait(10)
    thread.join()


def test_sigint_is_given_back() -> None:
    """To whoever had it: Python, a run within this process, or nobody where the tests run in a shell's background."""
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    interruption = Interruption()
    interruption.install()
    try:
        assert signal.getsignal(signal.SIGINT) is not before[1]
        interruption.uninstall()
        assert signal.getsignal(signal.SIGINT) is before[1]
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])


def test_an_error_of_the_work_is_its_own(interruption: Interruption) -> None:
    async def work() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        interruption.run(work())
