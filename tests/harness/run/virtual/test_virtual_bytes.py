"""The same seed gives the same history, byte for byte: in another process, with another hash seed, on another day."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from virtual_runs import DEMO, ROOT, SHORT, run_virtually

from harness.history.seal import SEAL_FILE

FREE = ("started_utc", "versions", "commit", "dirty")
"""What of run.json is of the checkout and the day."""


def command(experiment: Path, folder: Path, hash_seed: str, *more: str) -> Path:
    """The real command; ``folder`` is its working directory, so that its command line is the same everywhere."""
    folder.mkdir()
    argv = [sys.executable, "-m", "harness.cli", "run", str(experiment), "--virtual", "--plain", *more]
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "clock seconds per CPU second" in done.stdout
    (run_dir,) = (folder / "reports").glob("*/*")
    return run_dir


def contents(run_dir: Path) -> dict[str, bytes]:
    files = [
        *sorted((run_dir / "history").iterdir()),
        run_dir / "verdict.json",
        run_dir / "undo.jsonl",
        run_dir / "plan.json",
    ]
    files.append(run_dir / "load" / "records.jsonl")
    # run.json says when and by what the run was made, and the checksums are of it, too.
    return {file.name: file.read_bytes() for file in files if file.name not in ("run.json", SEAL_FILE)}


def run_info(run_dir: Path) -> dict[str, Any]:
    raw = json.loads((run_dir / "history" / "run.json").read_text())
    return {key: value for key, value in raw.items() if key not in FREE}


def test_the_demo_twice_with_two_hash_seeds_is_the_same_bytes(tmp_path: Path) -> None:
    first = command(DEMO, tmp_path / "a", "1")
    second = command(DEMO, tmp_path / "b", "4321")
    assert contents(first) == contents(second)
    assert {"objects.jsonl.zst", "requests.parquet", "faults.jsonl", "marks.jsonl", "ledger.jsonl"} <= set(
        contents(first)
    )
    assert run_info(first) == run_info(second)
    assert "embedded-virtual" in (first / "report.html").read_text()
    assert "embedded-virtual" in (first / "summary.md").read_text()


def test_seeds_differ_and_each_repeats_itself_after_others_in_one_process(tmp_path: Path) -> None:
    """Nothing of an earlier run may be left in the process: a search runs many after each other."""
    seen: dict[int, set[tuple[bytes, ...]]] = {}
    for seed in (1, 2, 3, 1, 2, 3):
        ran = run_virtually(SHORT, tmp_path / "reports", seed=seed)
        seen.setdefault(seed, set()).add(tuple(contents(ran.run_dir.path).values()))
    assert {seed: len(bytes_) for seed, bytes_ in seen.items()} == {1: 1, 2: 1, 3: 1}
    assert len(set.union(*seen.values())) == 3


@pytest.mark.parametrize("args", [("--time-scale", "1"), ("--virtual", "--time-scale", "0")])
def test_a_time_scale_that_makes_no_sense_exits_64(args: tuple[str, ...], tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "harness.cli", "run", str(SHORT), "--reports", str(tmp_path), *args]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 64 and "--time-scale" in done.stderr
