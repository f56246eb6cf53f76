"""How long the processes of a run waited for a processor, so that a crowded machine is not taken for a slow cluster.

A stall stops all of them at once and the watchdog sees it. On a machine that has more to do than it can, each of them
runs, but late, a little every time. Linux keeps the sum of these waits for every thread (the second number of
``/proc/PID/task/TID/schedstat``, nanoseconds); elsewhere nothing is recorded, and nothing can be said.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # ships no types

from harness.clock import RunClock

EVERY_S = 1.0
_PROC = Path("/proc")


def waits_ns(root: int, proc: Path = _PROC) -> dict[tuple[int, int], int]:
    """Nanoseconds on the run queue so far, by (process, thread), of ``root`` and all that descend from it."""
    found: dict[tuple[int, int], int] = {}
    for pid in _with_descendants(root):
        try:
            tasks = os.listdir(proc / str(pid) / "task")
        except OSError:
            continue  # it has just ended
        for task in tasks:
            try:
                said = (proc / str(pid) / "task" / task / "schedstat").read_text()
            except OSError:
                continue
            found[pid, int(task)] = int(said.split()[1])
    return found


def _with_descendants(root: int) -> Iterator[int]:
    yield root
    try:
        yield from (child.pid for child in psutil.Process(root).children(recursive=True))
    except psutil.Error:
        return


def waited_most(before: dict[tuple[int, int], int], after: dict[tuple[int, int], int]) -> tuple[int, int]:
    """``(pid, ns)`` of the thread that waited longest between the two looks. Threads are not added up: those of a Go
    program take turns, and what each waited is not what its work waited."""
    waits = ((pid, max(0, ns - before.get((pid, task), ns))) for (pid, task), ns in after.items())
    return max(waits, key=lambda wait: wait[1], default=(0, 0))


class RunQueueWatch:
    """``on_wait(t_ns, ratio, process)``, about once a second from its thread: the process whose thread waited most, and
    that thread's waiting in seconds per second."""

    def __init__(self, clock: RunClock, on_wait: Callable[[int, float, str], None]) -> None:
        self._clock = clock
        self._on_wait = on_wait
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="run-queue", daemon=True)

    def start(self) -> None:
        if (_PROC / "self" / "schedstat").exists():
            self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        before, since_ns = waits_ns(os.getpid()), self._clock.now_ns()
        while not self._stop.wait(EVERY_S):
            after, now_ns = waits_ns(os.getpid()), self._clock.now_ns()
            pid, waited_ns = waited_most(before, after)
            try:
                self._on_wait(now_ns, waited_ns / (now_ns - since_ns), _name(pid))
            except OSError:
                return  # the history cannot be written to; the writer's own error ends the run
            before, since_ns = after, now_ns


def _name(pid: int) -> str:
    """What people know it by: a Python program by its module, others by their file."""
    try:
        argv = psutil.Process(pid).cmdline()
    except psutil.Error:
        return ""
    module = argv.index("-m") + 1 if "-m" in argv[:4] else 0
    return Path(argv[module]).name if module < len(argv) else ""
