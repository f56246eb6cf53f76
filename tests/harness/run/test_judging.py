from __future__ import annotations

import shutil
from pathlib import Path

from harness.history.writer import HistoryWriter
from harness.run.judging import judge_run
from harness.run.rundir import RunDir
from harness.verdict import Status

ROOT = Path(__file__).resolve().parents[3]


def test_a_killed_run_without_its_run_json_is_unknown(tmp_path: Path) -> None:
    for folder in ("experiments", "loadprofiles"):
        shutil.copytree(ROOT / folder, tmp_path / "spec" / folder)
    shutil.rmtree(tmp_path / "spec" / "experiments" / "negative")
    with HistoryWriter(tmp_path / "history"):
        pass
    verdict = judge_run(RunDir(tmp_path))
    assert verdict.status is Status.UNKNOWN
    assert {f.check for f in verdict.findings} >= {"slo", "pdb", "run_complete"}
