"""Follows the line files that other processes append to, for the live view. Never used for judging."""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from harness.clock import NS_PER_MS, NS_PER_S
from harness.history.reader import fault_event
from harness.history.tables import FaultEvent

WINDOW_S = 2.0
"""The live rates and the live TTFT are over this many last clock seconds."""


NO_LOSS = ("ok", "aborted_by_client")
"""Outcomes that are none of the system's failures."""
LATELY = 2000
"""So many of the last ends are kept."""


class LineTail:
    """New complete JSON lines since the last call; a half-written last line waits for its end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def lines(self) -> Iterator[dict[str, Any]]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return
        complete, newline, _ = data.rpartition(b"\n")
        self._offset += len(complete) + len(newline)
        for line in complete.splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue


class FaultTail:
    """The faults as their lines appear."""

    def __init__(self, path: Path) -> None:
        self._tail = LineTail(path)
        self.seen: list[FaultEvent] = []
        """All so far. A line that cannot be read is left to ``History.load`` to report."""

    def news(self) -> list[FaultEvent]:
        """Those since the last call."""
        known = len(self.seen)
        for raw in self._tail.lines():
            with contextlib.suppress(KeyError, ValueError, TypeError, AttributeError):
                self.seen.append(fault_event(len(self.seen), raw))
        return self.seen[known:]


class LoadTail:
    """Counts and rates of the load as its records appear."""

    def __init__(self, path: Path, workers: int = 1) -> None:
        self._tail = LineTail(path)
        self._workers = workers
        self._ready_count = 0
        self.finished_count = 0
        self._sent_ns: deque[int] = deque()
        self._served_ns: deque[int] = deque()
        self._ended: deque[tuple[int, float | None, bool]] = deque()
        self.sent = 0
        self.ended = 0
        self.not_ok = 0

    def update(self) -> None:
        for record in self._tail.lines():
            kind = record.get("e")
            if kind == "sent":
                self.sent += 1
                self._sent_ns.append(int(record["t_ns"]))
            elif kind == "end":
                self._end(record)
            self._ready_count += kind == "ready"
            self.finished_count += kind == "finished"

    @property
    def ready(self) -> bool:
        """Whether all processes are."""
        return self._ready_count >= self._workers

    @property
    def finished(self) -> bool:
        return self.finished_count >= self._workers

    def sent_per_s(self, now_ns: int) -> float:
        return self._rate(self._sent_ns, now_ns)

    def served_per_s(self, now_ns: int) -> float:
        """Whole answers only."""
        return self._rate(self._served_ns, now_ns)

    def ended_since(self, since_ns: int) -> tuple[int, int]:
        """Requests that ended since then, and how many of them not ok. A planned hang-up is no loss."""
        lately = [ok for t, _, ok in self._ended if t >= since_ns]
        return len(lately), lately.count(False)

    def ttft_ms(self, now_ns: int) -> float | None:
        """Median of the requests that ended lately, None when none did."""
        since = now_ns - round(WINDOW_S * NS_PER_S)
        lately = [ttft for t, ttft, _ in self._ended if t >= since and ttft is not None]
        return median(lately) if lately else None

    def _end(self, record: dict[str, Any]) -> None:
        first, intended, end = record.get("first_token_ns"), record.get("intended_ns"), record.get("end_ns")
        self.ended += 1
        if record.get("outcome") == "ok":
            self._served_ns.append(int(end or 0))
        else:
            self.not_ok += 1
        ttft = (first - intended) / NS_PER_MS if first is not None and intended is not None else None
        self._ended.append((int(end or 0), ttft, record.get("outcome") in NO_LOSS))
        while len(self._ended) > LATELY:
            self._ended.popleft()

    @staticmethod
    def _rate(times: deque[int], now_ns: int) -> float:
        since = now_ns - round(WINDOW_S * NS_PER_S)
        while times and times[0] < since:
            times.popleft()
        return len(times) / WINDOW_S
