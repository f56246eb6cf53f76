"""One run of the command line on an experiment with real vLLM servers, and what came of it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Ran:
    name: str
    code: int
    folder: Path
    out: str

    @property
    def verdict(self) -> dict[str, Any]:
        return json.loads((self.folder / "verdict.json").read_text())

    def finding(self, check: str) -> dict[str, Any]:
        return next(f for f in self.verdict["findings"] if f["check"] == check)


def play(
    name: str, folder: Path, experiment: dict[str, Any], manifest: str, load: str, *options: str, limit_s: float
) -> Ran:
    """Writes the experiment and its files into the folder, and runs it there. ``folder`` of the answer is the run's
    own, or this one where there was none."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "experiment.yaml").write_text(yaml.safe_dump(experiment, sort_keys=False))
    (folder / "llm.yaml").write_text(manifest)
    (folder / "load.yaml").write_text(load)
    argv = [sys.executable, "-m", "harness.cli", "run", str(folder / "experiment.yaml"), *options]
    argv += ["--reports", str(folder / "run")]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=limit_s, check=False)
    runs = sorted((folder / "run").glob("*/*"))
    return Ran(name, done.returncode, runs[-1] if runs else folder, done.stdout + done.stderr)
