"""Which signals mean: stop, heal, and say that the answer is unknown."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def stop_signals() -> tuple[signal.Signals, ...]:
    """A terminal that closes (SIGHUP) is one of them, unless whoever started us said to live on (``nohup``)."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return tuple(n for n in numbers if n is not signal.SIGHUP or signal.getsignal(n) is not signal.SIG_IGN)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Whatever handlers are set meanwhile, those from before are back afterwards. Nothing outside the main thread,
    where none can be set."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: set by something that is no Python
                signal.signal(number, handler)
