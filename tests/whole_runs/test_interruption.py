"""Ctrl-C, SIGTERM or a closed terminal at any moment: the fault heals, the history is kept, the answer is unknown."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import time
from pathlib import Path
from random import Random

import pytest
from running import Ended, finish, processes_naming, start

SHORT = Path(__file__).parent / "short" / "experiment.yaml"
RUN_S = 14.0
"""About how long a short run takes here; a moment that falls behind its end still asserts what holds then."""
COUNT = int(os.environ.get("MOMENTS", "6"))
"""``make test-crash`` takes more of them."""
MOMENTS = [(n, (n + Random(f"moment-{n}").random()) * RUN_S / COUNT) for n in range(COUNT)]
"""One in each part of the run."""


def healed(folder: Path) -> bool:
    """Every planned change of the journal is undone."""
    planned, undone = set(), set()
    journal = folder / "undo.jsonl"
    for line in journal.read_text().splitlines() if journal.exists() else []:
        entry = json.loads(line)
        (planned if entry["op"] == "planned" else undone).add(entry["seq"])
    return planned <= undone


def interrupt(after_s: float, number: signal.Signals, reports: Path) -> Ended:
    """``after_s`` only chooses the moment; nothing asserted below depends on where in the run it falls."""
    process = start("run", str(SHORT), "--plain", "--reports", str(reports))
    _until_it_listens(process.pid)
    until = time.monotonic() + after_s
    lines: list[str] = []
    assert process.stdout is not None
    while time.monotonic() < until and process.poll() is None:
        readable, _, _ = select.select([process.stdout], [], [], 0.02)
        if readable:
            lines.append(os.read(process.stdout.fileno(), 65536).decode())
    process.send_signal(number)
    ended = finish(process, reports)
    return Ended(ended.code, "".join(lines) + ended.out, ended.folder)


def _until_it_listens(pid: int) -> None:
    """Before its first line a Python program dies of a signal as Python lets it, and nothing has begun."""
    status = Path(f"/proc/{pid}/status")
    deadline = time.monotonic() + 60
    while status.exists() and time.monotonic() < deadline:
        caught = re.search(r"^SigCgt:\s*(\w+)$", status.read_text(), re.MULTILINE)
        if caught is None or int(caught[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.001)
    assert not status.exists(), "the command never got its handlers"


@pytest.mark.parametrize(("moment", "after_s"), MOMENTS)
def test_a_run_interrupted_at_any_moment_ends_unknown_healed_and_alone(
    moment: int, after_s: float, tmp_path: Path
) -> None:
    number = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[moment % 3]
    ended = interrupt(after_s, number, tmp_path / "reports")
    assert processes_naming(str(tmp_path)) == []
    if "verdict:" in ended.out and "interrupted" not in ended.out:
        assert ended.code in (0, 1, 2)  # it had ended by itself before
        return
    assert ended.code == 2, ended.out
    if ended.folder is not None and (ended.folder / "verdict.json").exists():
        assert ended.verdict["status"] == "unknown"
        assert healed(ended.folder)
        assert (ended.folder / "history" / "run.json").exists()


@pytest.mark.parametrize("victim", ["locust", "chaostoolkit", "fakes.world"])
def test_a_child_that_dies_ends_the_run_as_unknown_with_its_last_lines(victim: str, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    process = start("run", str(SHORT), "--plain", "--reports", str(reports))
    pid = None
    deadline = time.monotonic() + 60
    while pid is None and time.monotonic() < deadline:
        select.select([], [], [], 0.05)
        pid = _child(victim, str(tmp_path)) if _load_runs(reports) else None
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
    killed_at = time.monotonic()
    ended = finish(process, reports)
    took_s = time.monotonic() - killed_at
    assert pid is not None, ended.out
    assert ended.code == 2, ended.out
    assert "killed by SIGKILL" in ended.out
    assert ended.verdict["status"] == "unknown"
    assert processes_naming(str(tmp_path)) == []
    assert took_s < 60  # a bound far from any time-out of the run; it takes seconds


def test_children_stop_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    process = start("run", str(SHORT), "--plain", "--reports", str(reports))
    deadline = time.monotonic() + 60
    while (chaos := _child("chaostoolkit", str(tmp_path))) is None and time.monotonic() < deadline:
        select.select([], [], [], 0.05)
    process.kill()
    process.communicate()
    assert chaos is not None
    deadline = time.monotonic() + 30
    while (left := processes_naming(str(tmp_path))) and time.monotonic() < deadline:
        select.select([], [], [], 0.1)
    assert left == []


def _load_runs(reports: Path) -> bool:
    return any(reports.glob("*/*/load/go"))


def _child(words: str, folder: str) -> int | None:
    for line in processes_naming(folder):
        pid, _, argv = line.partition(": ")
        if words in argv and "harness.cli" not in argv:
            return int(pid)
    return None
