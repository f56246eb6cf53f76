"""Which signals mean: stop, heal, and say that the answer is unknown."""

from __future__ import annotations

import signal


def stop_signals() -> tuple[signal.Signals, ...]:
    """A terminal that closes (SIGHUP) is one of them, unless whoever started us said to live on (``nohup``)."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return tuple(n for n in numbers if n is not signal.SIGHUP or signal.getsignal(n) is not signal.SIG_IGN)
