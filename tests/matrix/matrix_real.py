"""A row run for real: sockets, Locust, Chaos Toolkit and the wall clock, by the same command that people use."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from matrix_cells import Cell, Said, planted
from matrix_row import ROOT, Row

LIMIT_S = 300
"""A run takes about a minute; a machine that is busy with other things may take longer."""


def run_for_real(row: Row, seed: int, keep: Path | None = None) -> tuple[Cell, float]:
    """The cell, and the seconds it took. One at a time: two runs on one machine disturb each other."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="verdict-matrix-") as folder:
        experiment = planted(ROOT / row.experiment, row.bugs, Path(folder) / "spec")
        reports = keep or Path(folder) / "reports"
        before = set(reports.glob("*/*/verdict.json"))
        command = [sys.executable, "-m", "harness.cli", "run", str(experiment), "--plain", "--seed", str(seed)]
        ended = subprocess.run(
            [*command, "--reports", str(reports)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        written = set(reports.glob("*/*/verdict.json")) - before
        if not written:
            last = (ended.stderr or ended.stdout).strip().splitlines()[-1:] or ["it said nothing"]
            return Cell(row.name, seed, f"crashed: {last[0]}", (), 0.0), time.monotonic() - began_s
        return _cell(row, seed, written.pop()), time.monotonic() - began_s


def _cell(row: Row, seed: int, verdict: Path) -> Cell:
    said = json.loads(verdict.read_text())
    findings = tuple(
        Said(f["check"], f["role"] == "validity", f["status"], f["judged"], f"{f['sentence']} {f['story']}")
        for f in said["findings"]
    )
    return Cell(row.name, seed, said["status"], findings, 0.0)
