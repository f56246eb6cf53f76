"""The watchdog says so when it cannot watch any more."""

from __future__ import annotations

import errno
import threading

from harness.clock import RunClock, monotonic_ns
from harness.run.watchdog import Watchdog


def test_a_stall_that_cannot_be_recorded_is_kept_as_a_failure() -> None:
    asked = threading.Event()

    def full(t_ns: int, stall_s: float) -> None:
        asked.set()
        raise OSError(errno.ENOSPC, "No space left on device")

    watchdog = Watchdog(RunClock(monotonic_ns(), 1.0), full)
    watchdog.start()
    assert asked.wait(30)
    watchdog.stop()
    assert watchdog.failure is not None and watchdog.failure.errno == errno.ENOSPC
