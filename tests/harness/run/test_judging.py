from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from harness.history.reader import History
from harness.history.writer import HistoryWriter
from harness.run.judging import judge_run, print_verdict
from harness.run.rundir import RunDir
from harness.verdict import Finding, Role, Status, Verdict

ROOT = Path(__file__).resolve().parents[3]


def test_a_killed_run_without_its_run_json_is_unknown(tmp_path: Path) -> None:
    for folder in ("experiments/manifests", "loadprofiles"):
        shutil.copytree(ROOT / folder, tmp_path / "spec" / folder)
    shutil.copy(ROOT / "experiments" / "spot-interruption-during-burst.yaml", tmp_path / "spec" / "experiments")
    with HistoryWriter(tmp_path / "history"):
        pass
    verdict = judge_run(RunDir(tmp_path), History.load(tmp_path))
    assert verdict.status is Status.UNKNOWN
    assert {f.check for f in verdict.findings} >= {"slo", "pdb", "run_complete"}


@pytest.mark.parametrize("width", [1, 20, 30, 59, 60, 80, 200])
def test_every_sentence_is_shown_however_narrow_the_terminal(width: int) -> None:
    finding = Finding("graceful_drain", Role.CHECK, Status.UNKNOWN, "no stream was in flight", 0)
    out = io.StringIO()
    print_verdict(Verdict(Status.UNKNOWN, "nothing was tested", (finding,)), Console(file=out, width=width))
    letters = "".join(out.getvalue().split())
    assert "graceful_drain" in letters and "unknown" in letters
    assert "nostreamwasinflight" in letters
