"""How much of the last second a GPU was busy: what nvidia-smi and DCGM call utilisation.

A GPU counts as busy while any kernel runs, however little of it that kernel uses. One stream on an idle server keeps it
busy almost all the time: the figure says "in use", not "full".
"""

from __future__ import annotations

from collections import deque

WINDOW_S = 1.0
"""The sampling window, in clock seconds: as latencies of tokens it is never scaled."""


class DutyCycle:
    """Busy periods, noted at their ends."""

    def __init__(self) -> None:
        self._since_s: float | None = None
        self._past: deque[tuple[float, float]] = deque()

    def begin(self, now_s: float) -> None:
        """Again while busy changes nothing."""
        if self._since_s is None:
            self._since_s = now_s

    def end(self, now_s: float) -> None:
        if self._since_s is not None:
            self._past.append((self._since_s, now_s))
            self._since_s = None
            self._forget(now_s - WINDOW_S)

    def share(self, now_s: float) -> float:
        """0 to 1, of the window that ends now."""
        begin_s = now_s - WINDOW_S
        self._forget(begin_s)
        busy_s = sum(end - max(begin, begin_s) for begin, end in self._past)
        if self._since_s is not None:
            busy_s += now_s - max(self._since_s, begin_s)
        return max(0.0, min(1.0, busy_s / WINDOW_S))

    def _forget(self, before_s: float) -> None:
        while self._past and self._past[0][1] <= before_s:
            self._past.popleft()
