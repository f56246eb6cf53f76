"""Processes of a run under test: who they are, when they ended, and how long they only waited for a processor."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
LOOK_S = 0.02


@dataclass(frozen=True)
class End:
    """``took_s`` from the kill to the exit; ``stalled_s`` of it were spent runnable without a processor: by the
    process itself (its main thread), by those whose answer it needs, or by us who watch."""

    took_s: float
    stalled_s: float

    @property
    def own_s(self) -> float:
        return max(0.0, self.took_s - self.stalled_s)


def of_run(reports: Path) -> dict[str, int]:
    """Living children of a run below ``reports``, by kind: the folder stands in their environment."""
    found: dict[str, int] = {}
    for entry in PROC.glob("[0-9]*"):
        try:
            argv = (entry / "cmdline").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if not argv or state in "ZX" or str(reports).encode() not in (entry / "environ").read_bytes():
                continue
        except OSError:
            continue
        kind = next((k for k, word in _WORDS.items() if word in argv), None)
        if kind is not None:
            found[kind] = int(entry.name)
    return found


_WORDS = {"chaos": b"chaostoolkit", "load": b"locust"}


def waited_s(pid: int) -> float:
    """Seconds that the process's main thread was runnable and had no processor; 0 where there is none."""
    try:
        return int((PROC / str(pid) / "schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def watch_ends(pids: Mapping[str, int], since_s: float, helpers: Iterable[int], limit_s: float) -> dict[str, End]:
    """By kind, those that ended within ``limit_s`` of ``since_s`` (CLOCK_MONOTONIC)."""
    helpers = tuple(helpers)
    poll = select.poll()
    kinds: dict[int, str] = {}
    for kind, pid in pids.items():
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        kinds[fd] = kind
        poll.register(fd, select.POLLIN)
    at_first = {pid: waited_s(pid) for pid in (*pids.values(), *helpers)}
    latest = dict(at_first)
    late_s, ends = 0.0, {}
    open_fds = set(kinds)
    while open_fds and time.monotonic() - since_s < limit_s:
        before = time.monotonic()
        ready = poll.poll(LOOK_S * 1000)
        late_s += max(0.0, time.monotonic() - before - LOOK_S)
        for pid in latest:
            latest[pid] = max(latest[pid], waited_s(pid))
        for fd, _ in ready:
            kind = kinds[fd]
            own = pids[kind]
            stalled = sum(latest[pid] - at_first[pid] for pid in (own, *helpers)) + late_s
            ends[kind] = End(time.monotonic() - since_s, stalled)
            poll.unregister(fd)
            open_fds.discard(fd)
    for fd in kinds:
        os.close(fd)
    return ends
