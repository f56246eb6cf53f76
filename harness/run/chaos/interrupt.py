"""SIGTERM and Ctrl-C while an action waits: the wait ends at once, and the rollbacks still run.

Chaos Toolkit's own handler raises ``InterruptExecution`` wherever the main thread happens to be. Inside an event loop
that may be a callback, which swallows it; and chaoslib before 1.45 turns what an action raises into a mere failed
activity and goes on with the next one. So this handler cancels the waiting task instead, and the control raises
``InterruptExecution`` between activities, where every version obeys it. A second signal would make Chaos Toolkit drop
the remaining rollbacks; here it changes nothing while the heal runs.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

from harness.run.chaos.lib import InterruptExecution

T = TypeVar("T")
Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


class Interruption:
    """Whether this process was asked to stop, and how its waits hear of it."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._waiting: dict[asyncio.Task[Any], asyncio.AbstractEventLoop] = {}
        self._main_waits = False
        self._sigint: Handler = None

    def install(self) -> None:
        """Takes over from chaoslib's handlers; only the main thread may."""
        if threading.current_thread() is not threading.main_thread():
            return
        signal.signal(signal.SIGTERM, self._on_signal)
        previous = signal.signal(signal.SIGINT, self._on_signal)
        if previous != self._on_signal:
            self._sigint = previous

    def uninstall(self) -> None:
        """Gives SIGINT back. SIGTERM is restored by chaoslib, whose handler we replaced."""
        if self._sigint is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._sigint)
            self._sigint = None

    def raise_if_interrupted(self) -> None:
        if self.reason is not None:
            raise InterruptExecution(self.reason)

    def run(self, work: Coroutine[Any, Any, T], *, shielded: bool = False) -> T:
        """Runs ``work`` to its end, or raises ``InterruptExecution`` once it has been cancelled and has cleaned up.

        Shielded work is not cancelled, and starts even after an interruption: it must have a deadline of its own.
        """
        if self.reason is not None and not shielded:
            work.close()
            raise InterruptExecution(self.reason)
        on_main = threading.current_thread() is threading.main_thread()
        try:
            # With a factory the runner leaves the thread's current loop as it found it.
            with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
                if on_main:
                    self._main_waits = True
                return runner.run(self._interruptible(work, shielded))
        except asyncio.CancelledError:
            raise InterruptExecution(self.reason or "cancelled") from None
        finally:
            if on_main:
                self._main_waits = False

    async def _interruptible(self, work: Coroutine[Any, Any, T], shielded: bool) -> T:
        task = asyncio.current_task()
        assert task is not None
        if not shielded:
            self._waiting[task] = asyncio.get_running_loop()
        try:
            # A signal between the runner's start and the line above cancelled nobody.
            if self.reason is not None and not shielded:
                work.close()
                raise InterruptExecution(self.reason)
            return await work
        finally:
            self._waiting.pop(task, None)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        first = self.reason is None
        if first:
            self.reason = f"{signal.Signals(number).name} received"
        for task, loop in list(self._waiting.items()):
            loop.call_soon_threadsafe(task.cancel)
        if self._main_waits:
            return
        if first:
            raise InterruptExecution(self.reason)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
