from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from faults_ground import inject, make_ground, make_kube, make_log, stages
from seen import until

from harness.errors import GuardRefused, TargetError
from harness.faults.catalogue.pause_load import PauseLoad
from harness.faults.heal import heal_pending
from harness.faults.life import run_fault
from harness.faults.load_process import RUN_DIR_ENV, load_pid
from harness.faults.port import Ground
from harness.faults.undo import ResumeProcess
from harness.faults.undoing import undo_change
from harness.processes import proc

ID = "pause_load-1"
SLEEPER = "import sys; print('up', flush=True); sys.stdin.read()"


def start(run_dir: Path, *args: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, RUN_DIR_ENV: str(run_dir)},
    )
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    return process


def stop(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@pytest.fixture
def load(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = start(tmp_path, "locust")
    (tmp_path / "processes.json").write_text(json.dumps({"load": process.pid}))
    yield process
    stop(process)


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground]:
    async with make_ground(tmp_path, make_kube()) as ground:
        yield ground


def stopped(process: subprocess.Popen[str]) -> bool:
    found = proc.stat(process.pid)
    return found is not None and found.stopped


async def until_stage(run_dir: Path, stage: str) -> None:
    async with asyncio.timeout(10):
        while stage not in stages(run_dir):
            await asyncio.sleep(0.01)


async def test_the_load_stands_still_and_goes_on(load: subprocess.Popen[str], ground: Ground, tmp_path: Path) -> None:
    running = asyncio.create_task(run_fault(PauseLoad(after_s=0, hold_s=120), ID, ("load",), ground, make_log(ground)))
    await until_stage(tmp_path, "observed")
    assert stopped(load)
    result = await running
    assert not stopped(load)
    assert result.observed == f"process {load.pid} is stopped (state T)"
    assert result.ended is not None and result.ended.endswith(f"process {load.pid} was resumed")
    assert stages(tmp_path) == ["planned", "injected", "observed", "ended", "heal_observed"]
    assert ground.undo.replay().pending == ()


async def test_a_hold_that_is_interrupted_resumes_at_once(
    load: subprocess.Popen[str], ground: Ground, tmp_path: Path
) -> None:
    running = asyncio.create_task(run_fault(PauseLoad(after_s=0, hold_s=1e6), ID, ("load",), ground, make_log(ground)))
    await until_stage(tmp_path, "observed")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not stopped(load) and ground.undo.replay().pending == ()


async def test_heal_resumes_what_a_killed_harness_left_stopped(load: subprocess.Popen[str], ground: Ground) -> None:
    await inject(PauseLoad(after_s=0, hold_s=60), ground, ID, ("load",))
    assert (await heal_pending(ground, None)).clean
    assert not stopped(load)


async def test_heal_tolerates_that_the_process_has_ended(load: subprocess.Popen[str], ground: Ground) -> None:
    await inject(PauseLoad(after_s=0, hold_s=60), ground, ID, ("load",))
    stop(load)
    report = await heal_pending(ground, None)
    assert report.clean and "has ended, nothing to resume" in report.undone[0]


async def test_a_later_process_with_the_same_id_is_not_signalled(load: subprocess.Popen[str], ground: Ground) -> None:
    """Ids are given anew; who is at work under it now may have been stopped by somebody else, for a reason."""
    os.kill(load.pid, signal.SIGSTOP)
    await until(lambda: stopped(load))
    now = proc.stat(load.pid)
    assert now is not None
    assert "nothing to resume" in await undo_change(ground, ResumeProcess(load.pid, now.start_ticks - 1))
    assert stopped(load)
    assert "was resumed" in await undo_change(ground, ResumeProcess(load.pid, now.start_ticks))


def test_a_process_that_is_not_the_load_is_never_signalled(tmp_path: Path) -> None:
    process = start(tmp_path, "something-else")
    (tmp_path / "processes.json").write_text(json.dumps({"load": process.pid}))
    with pytest.raises(GuardRefused, match="is not the load of this run"):
        load_pid(tmp_path)
    stop(process)


def test_the_load_of_another_run_is_refused(load: subprocess.Popen[str], tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "processes.json").write_text(json.dumps({"load": load.pid}))
    with pytest.raises(GuardRefused, match="is the load of another run"):
        load_pid(other)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"chaos": 1}'])
def test_without_a_known_load_there_is_nothing_to_pause(text: str, tmp_path: Path) -> None:
    if text:
        (tmp_path / "processes.json").write_text(text)
    with pytest.raises(TargetError, match="no load process is known"):
        load_pid(tmp_path)


@pytest.mark.parametrize("pid", [0, 1, -1, "12", None])
def test_a_pid_that_would_hit_others_is_refused(pid: object, tmp_path: Path) -> None:
    (tmp_path / "processes.json").write_text(json.dumps({"load": pid}))
    with pytest.raises(GuardRefused, match="as the load process"):
        load_pid(tmp_path)
