from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from faults_ground import TIME_SCALE, ScriptedCloud, cloud_server, events, stages

from harness.clock import START_NS_ENV, RunClock, monotonic_ns
from harness.faults.heal import heal_all
from harness.faults.undo import CancelInterruption, DeleteObjects, ObjectRef, ResumeProcess, UndoJournal
from harness.processes import proc
from harness.targets.base import Connection

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
async def cloud() -> AsyncIterator[ScriptedCloud]:
    async with cloud_server() as server:
        server.add("spot-1", "interrupting")
        yield server


def connection(tmp_path: Path, control_url: str | None) -> Connection:
    return Connection("embedded", tmp_path / "no-kubeconfig", "http://s", control_url, "inference", TIME_SCALE)


def journal(tmp_path: Path) -> UndoJournal:
    return UndoJournal(tmp_path, RunClock(monotonic_ns(), TIME_SCALE))


async def test_a_run_that_changed_nothing_needs_no_cluster(tmp_path: Path) -> None:
    report = await heal_all(tmp_path, connection(tmp_path, NOWHERE))
    assert (report.planned, report.clean) == (0, True)
    assert list(tmp_path.iterdir()) == []


async def test_healing_twice_says_the_same_and_asks_the_cloud_once(cloud: ScriptedCloud, tmp_path: Path) -> None:
    journal(tmp_path).before("spot_interruption-1", CancelInterruption("i-spot-1", "spot-1"))
    clock = RunClock(monotonic_ns(), TIME_SCALE)
    first = await heal_all(tmp_path, connection(tmp_path, cloud.url), clock=clock)
    second = await heal_all(tmp_path, connection(tmp_path, cloud.url), clock=clock)
    assert first == second and first.clean and cloud.calls == ["DELETE i-spot-1"]
    assert [(e["fault"], e["stage"], e["fidelity"]) for e in events(tmp_path)] == [
        ("spot_interruption", "healing", "emulated"),
        ("spot_interruption", "healed", "emulated"),
    ]


async def test_without_the_runs_clock_its_history_is_left_alone(
    cloud: ScriptedCloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(START_NS_ENV, raising=False)
    journal(tmp_path).before("spot_interruption-1", CancelInterruption("i-spot-1", "spot-1"))
    assert (await heal_all(tmp_path, connection(tmp_path, cloud.url))).clean
    assert events(tmp_path) == []


async def test_one_undo_that_fails_does_not_keep_the_others_from_being_done(
    cloud: ScriptedCloud, tmp_path: Path
) -> None:
    log = journal(tmp_path)
    log.before("spot_interruption-1", CancelInterruption("i-spot-1", "spot-1"))
    log.before("apply_objects-1", DeleteObjects("run", (ObjectRef("v1", "Pod", "a", "inference"),)))
    report = await heal_all(tmp_path, connection(tmp_path, cloud.url))
    assert len(report.undone) == 1 and report.undone[0].startswith("spot_interruption-1")
    assert len(report.left) == 1 and report.left[0].startswith("apply_objects-1")
    assert len(report.errors) == 1 and "no-kubeconfig" in report.errors[0]


async def test_a_cloud_that_cannot_be_reached_leaves_the_change_and_says_so(tmp_path: Path) -> None:
    journal(tmp_path).before("spot_interruption-1", CancelInterruption("i-spot-1", "spot-1"))
    report = await heal_all(tmp_path, connection(tmp_path, NOWHERE), clock=RunClock(monotonic_ns(), 1))
    assert len(report.left) == 1 and "control API http://127.0.0.1:9" in report.errors[0]
    assert stages(tmp_path) == ["healing", "failed"]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


async def test_a_cloud_that_hangs_costs_no_more_than_the_time_given(
    sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    found = proc.stat(sleeper.pid)
    assert found is not None
    log = journal(tmp_path)
    log.before("pause_load-1", ResumeProcess(sleeper.pid, found.start_ticks))
    log.before("spot_interruption-1", CancelInterruption("i-spot-1", "spot-1"))
    os.kill(sleeper.pid, signal.SIGSTOP)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = "http://{}:{}".format(*silent.getsockname())
        report = await heal_all(tmp_path, connection(tmp_path, url), within_s=0.5)
    resumed = proc.stat(sleeper.pid)
    assert report.errors == ("healing was not over after 0.5 s",)
    assert [line.split(":")[0] for line in report.left] == ["spot_interruption-1"]
    assert resumed is not None and not resumed.stopped


async def test_damage_in_the_journal_is_an_error_of_the_report(tmp_path: Path) -> None:
    (tmp_path / "undo.jsonl").write_text("garbage\n")
    report = await heal_all(tmp_path, connection(tmp_path, NOWHERE))
    assert not report.clean and report.errors[0].startswith("undo.jsonl:1: ")
