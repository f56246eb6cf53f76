"""A cluster that stands is taken down in good order, for as long as its target may need."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.errors import BadInput
from harness.kube.port import ApiError
from harness.targets import holding, standing
from harness.targets.stack_status import programs

HOLDER = """
import pathlib, signal, sys, time
log, ended = pathlib.Path({log!r}), pathlib.Path({ended!r})

def end(*_):
    log.open("a").write("... deleting the cluster\\n")
    time.sleep(0.5)
    ended.write_text("in good order")
    sys.exit(0)

signal.signal(signal.SIGTERM, end)
log.write_text("... bringing it up\\n")
while True:
    time.sleep(0.05)
"""


@pytest.mark.parametrize(("target", "in_good_order"), [("kind", True), ("embedded", False)])
def test_each_target_has_its_own_time_to_go_down(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    target: str,
    in_good_order: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(standing, "DOWN_TIMEOUT_S", 0.1)
    log, ended = tmp_path / standing.FOLDER / "logs" / standing.HOLDER_LOG, tmp_path / "ended"
    log.parent.mkdir(parents=True)
    process = subprocess.Popen([sys.executable, "-c", HOLDER.format(log=str(log), ended=str(ended))])
    try:
        standing.record(process.pid, target)
        while not (log.exists() and log.read_text()):
            assert process.poll() is None
        assert standing.take_down() == f"stopped the cluster (process {process.pid})"
    finally:
        process.kill()
        process.wait()
    assert ended.exists() is in_good_order
    assert not in_good_order or "... deleting the cluster" in capsys.readouterr().err
    assert standing.take_down() == "no cluster of ours is up in this folder"


def test_a_process_that_cannot_be_written_down_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def full(pid: int, target: str) -> None:
        started.append(pid)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(standing, "record", full)
    with pytest.raises(BadInput, match="cannot write here: No space left on device"):
        standing.bring_up(None, seed=1, ttl_s=60)
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "a.log"),
            "a.log: the machine refused: No space left on device",
        ),
        (ApiError(500, "InternalError", "etcd is gone"), "the API server said 500 InternalError: etcd is gone"),
    ],
)
def test_why_it_did_not_come_up_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, said: str
) -> None:
    async def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr(holding, "hold", fails)
    monkeypatch.setattr(
        sys, "argv", ["holding", "--folder", str(tmp_path), "--target", "embedded", "--seed", "1", "--ttl-s", "9"]
    )
    assert holding.main() == 70
    assert capsys.readouterr().err == f"gpu-harness: {said}\n"


def test_one_that_died_is_forgotten_once_it_was_taken_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (standing.FOLDER / "logs").mkdir(parents=True)
    (standing.FOLDER / "logs" / standing.HOLDER_LOG).write_text("gpu-harness: the cluster is down\n")
    (standing.FOLDER / standing.PROCESS_FILE).write_text(json.dumps({"pid": float("inf"), "started": 1}))
    assert standing.take_down() == "no cluster of ours is up in this folder"
    with pytest.raises(BadInput, match="no cluster of ours is up in this folder"):
        programs(standing.FOLDER)


def test_a_process_that_ends_just_then_is_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    standing.FOLDER.mkdir()
    seen = iter([4711])
    monkeypatch.setattr(standing, "_our_process", lambda: next(seen, None))

    def gone(pid: int, number: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", gone)
    assert standing.take_down() == "stopped the cluster (process 4711)"
