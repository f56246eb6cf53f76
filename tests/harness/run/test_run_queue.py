"""Waiting for a processor is read per thread, and told of the process that waited most."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.clock import RunClock, monotonic_ns
from harness.run.run_queue import RunQueueWatch, waited_most, waits_ns

linux = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel keeps no schedstat")


def test_threads_are_not_added_up_and_a_new_one_counts_from_its_first_look() -> None:
    before = {(1, 1): 100, (2, 2): 0, (2, 3): 50}
    after = {(1, 1): 700, (2, 2): 400, (2, 3): 450, (2, 4): 9_000, (3, 3): 9_000}
    assert waited_most(before, after) == (1, 600)
    assert waited_most({}, {}) == (0, 0)


def test_a_process_that_ends_meanwhile_is_left_out(tmp_path: Path) -> None:
    task = tmp_path / str(os.getpid()) / "task" / "7"
    task.mkdir(parents=True)
    (task / "schedstat").write_text("11 22 33\n")
    assert waits_ns(os.getpid(), tmp_path) == {(os.getpid(), 7): 22}


@linux
def test_children_of_the_run_are_looked_at() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert child.pid in {pid for pid, _ in waits_ns(os.getpid())}
    finally:
        child.communicate(b"\n")


@linux
def test_it_tells_about_each_second_until_it_is_stopped() -> None:
    told: list[tuple[int, float, str]] = []
    twice = threading.Event()

    def tell(t_ns: int, ratio: float, process: str) -> None:
        told.append((t_ns, ratio, process))
        if len(told) == 2:
            twice.set()

    watch = RunQueueWatch(RunClock(monotonic_ns(), 1.0), tell)
    watch.start()
    assert twice.wait(60)
    watch.stop()
    assert all(ratio >= 0 for _, ratio, _ in told)
    assert [t for t, _, _ in told] == sorted(t for t, _, _ in told)
