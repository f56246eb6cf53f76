"""The wall clock of a world: a fixed epoch plus the event loop's time, so that virtual time moves it too."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class WallClock:
    """API timestamps come from here. ``epoch`` is the wall time at which the clock was made, in UTC."""

    def __init__(self, epoch: datetime) -> None:
        self._epoch = epoch.astimezone(UTC)
        self._start_s = asyncio.get_running_loop().time()
        self._stamped: tuple[float, str] = (-1.0, "")

    def ahead(self, seconds: float) -> WallClock:
        """Another clock of the same loop that is wrong by so much."""
        return WallClock(self.now() + timedelta(seconds=seconds))

    def now(self) -> datetime:
        return self._epoch + timedelta(seconds=asyncio.get_running_loop().time() - self._start_s)

    def stamp(self) -> str:
        """metav1.Time: whole seconds."""
        now_s = asyncio.get_running_loop().time()
        if now_s != self._stamped[0]:  # in virtual time many writes are made at one moment
            self._stamped = (now_s, stamp(self.now()))
        return self._stamped[1]

    def stamp_micro(self) -> str:
        """metav1.MicroTime, as leases and events.k8s.io use."""
        return self.now().isoformat(timespec="microseconds")[:26] + "Z"


def stamp(t: datetime) -> str:
    return t.isoformat()[:19] + "Z"


def parse_stamp(text: str) -> datetime:
    """Reads metav1.Time and metav1.MicroTime."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
