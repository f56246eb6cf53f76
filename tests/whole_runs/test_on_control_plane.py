"""Whole runs on the real control plane. Without its programs they are skipped, and say how to get them."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from running import command, finish, processes_naming, start

from harness.errors import TargetError
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.find import find_binaries
from harness.targets.standing import FOLDER, PROCESS_FILE

SHORT = Path(__file__).parent / "short" / "experiment.yaml"


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    try:
        find_binaries(CONTROL_PLANE)
    except TargetError as missing:
        if os.environ.get("REQUIRE") == "1":
            raise
        pytest.skip(str(missing))


def test_a_run_goes_its_whole_course_and_keeps_logs_but_no_data(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    args = ["run", str(SHORT), "--target", "controlplane", "--plain", "--reports", str(reports)]
    ended = command(*args, reports=reports)
    assert ended.finding("run_complete")["judged"] == "pass", ended.out
    assert ended.finding("faults_observed")["judged"] == "pass", ended.out
    assert ended.finding("recorder_complete")["judged"] == "pass", ended.out
    assert ended.finding("change_undone")["judged"] == "pass", ended.out
    assert ended.folder is not None
    assert {"etcd.log", "kube-apiserver.log", "surroundings.log"} <= {f.name for f in (ended.folder / "logs").iterdir()}
    assert not (ended.folder / "control-plane").exists()
    assert '"kube-scheduler": "1.37' in (ended.folder / "history" / "run.json").read_text()
    assert processes_naming(str(tmp_path)) == []


def test_a_component_that_crashes_ends_the_run_as_unknown_with_its_last_lines(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    process = start("run", str(SHORT), "--target", "controlplane", "--plain", "--reports", str(reports))
    wait_until(lambda: any(reports.glob("*/*/load/go")) or process.poll() is not None)
    victims = [line for line in processes_naming(str(tmp_path)) if "/kube-controller-manager --" in line]
    for line in victims:
        os.kill(int(line.partition(":")[0]), signal.SIGKILL)
    ended = finish(process, reports)
    assert victims and ended.code == 2, ended.out
    assert "kube-controller-manager was killed by SIGKILL" in ended.out
    assert "controller" in ended.out.partition("the run ended early")[2], "its last lines"
    assert ended.verdict["status"] == "unknown"
    assert processes_naming(str(tmp_path)) == []


def test_a_cluster_that_stands_goes_with_whoever_holds_it(tmp_path: Path) -> None:
    up = command("up", "--target", "controlplane", cwd=tmp_path)
    assert up.code == 0, up.out
    try:
        assert "kubeconfig" in up.out
        again = command("up", "--target", "controlplane", cwd=tmp_path)
        assert again.code == 64 and "up already" in again.out
        programs = [line for line in processes_naming(str(tmp_path)) if "/kube-apiserver --" in line]
        assert programs
        holder = (tmp_path / FOLDER / PROCESS_FILE).read_text()
        os.kill(int(holder.partition('"pid": ')[2].partition(",")[0]), signal.SIGKILL)
        wait_until(lambda: processes_naming(str(tmp_path)) == [])
    finally:
        down = command("down", cwd=tmp_path)
    assert "no cluster" in down.out


def wait_until(fact: Callable[[], bool], deadline_s: float = 60) -> None:
    deadline = time.monotonic() + deadline_s
    while not fact():
        assert time.monotonic() < deadline
        select.select([], [], [], 0.05)
