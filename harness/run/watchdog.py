"""Notices when the whole machine stood still, so that nobody blames the cluster for it.

A thread that asks for a short sleep and gets a long one was not run: the machine (or its hypervisor) stalled, or this
process starved. Either way nothing measured in that span is trustworthy.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from harness.clock import NS_PER_S, RunClock

TICK_S = 0.02
NOTED_S = 0.1
"""Overshoots from here on are recorded; what is too much is the check's decision."""


class Watchdog:
    """``on_stall(t_ns, stall_s)``: a span of ``stall_s`` without a tick ended at ``t_ns``. Called from its thread."""

    def __init__(self, clock: RunClock, on_stall: Callable[[int, float], None]) -> None:
        self._clock = clock
        self._on_stall = on_stall
        self.failure: OSError | None = None
        """Why it watches no more; a stall that nobody recorded would pass for none."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        try:
            self._watch_on()
        except OSError as error:
            self.failure = error

    def _watch_on(self) -> None:
        last = self._clock.now_ns()
        self._on_stall(last, 0.0)  # shows that somebody watched
        while not self._stop.is_set():
            time.sleep(TICK_S)
            now = self._clock.now_ns()
            stall_s = (now - last) / NS_PER_S - TICK_S
            if stall_s >= NOTED_S:
                self._on_stall(now, stall_s)
            last = now
