"""A dry run tells what would be touched, asks for every permission, and touches nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.commands import run_command_line
from harness.errors import ExitCode
from harness.targets.standing import FOLDER

ROOT = Path(__file__).resolve().parents[3]
DEMO = ROOT / "experiments" / "spot-interruption-during-burst.yaml"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


def test_targets_undo_and_permissions_are_told_and_nothing_is_made(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["run", str(DEMO), "--dry-run"]) is ExitCode.PASS
    said = capsys.readouterr().out
    assert "spot_interruption-1" in said and "nodes: spot-1" in said and "cancel_interruption" in said
    assert "apply_objects-1" in said and "delete_objects" in said
    assert "get, create, delete podgroups.scheduling.k8s.io in inference" in said
    assert said.rstrip().endswith("nothing was touched")
    assert list(elsewhere.iterdir()) == []


def test_on_a_cluster_that_stands_every_permission_is_asked_for(tmp_path: Path) -> None:
    def command(*args: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "harness.cli", *args]
        return subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)

    assert command("up", "--ttl", "120").returncode == 0
    try:
        done = command("run", str(DEMO), "--dry-run")
    finally:
        assert command("down").returncode == 0
    assert done.returncode == 0, done.stderr
    assert str(FOLDER) in done.stdout and "yes create leases in inference" in done.stdout and "NO" not in done.stdout
    assert not (tmp_path / "reports").exists()
