"""The smallest experiment of docs/load-profiles.md is sound, and runs to the verdicts that the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness.commands import run_command_line
from harness.errors import ExitCode

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("with_a_fault", [False, True])
def test_it_runs_as_the_page_says(with_a_fault: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "load-profiles.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (experiment,) = (block for block in blocks if "extensions:" in block)
    (method,) = (block for block in blocks if block.startswith("method:"))
    (tmp_path / "load.yaml").write_text(blocks[0])
    (tmp_path / "e.yaml").write_text(experiment.replace("method: []\n", method) if with_a_fault else experiment)
    assert run_command_line(["validate", str(tmp_path / "e.yaml")]) is ExitCode.PASS
    code = run_command_line(["run", str(tmp_path / "e.yaml"), "--virtual", "--plain", "--reports", str(tmp_path / "r")])
    (written,) = (tmp_path / "r").rglob("verdict.json")
    statuses = {finding["check"]: finding["status"] for finding in json.loads(written.read_text())["findings"]}
    assert code is (ExitCode.PASS if with_a_fault else ExitCode.UNKNOWN)
    not_passed = {check for check, status in statuses.items() if status != "pass"}
    assert not_passed == (set() if with_a_fault else {"faults_observed"})
