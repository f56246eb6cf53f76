"""The folder of one run, and where each file lies in it (design, §2)."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from harness.errors import BadInput, Where
from harness.hiding import experiment_without_secrets, without_secrets
from harness.history.tables import FAULTS_FILE, LEDGER_FILE, MARKS_FILE


@dataclass(frozen=True, slots=True)
class RunDir:
    path: Path

    @property
    def history(self) -> Path:
        return self.path / "history"

    @property
    def plan(self) -> Path:
        return self.path / "plan.json"

    @property
    def schedule(self) -> Path:
        return self.path / "schedule.parquet"

    @property
    def records(self) -> Path:
        return self.path / "load" / "records.jsonl"

    @property
    def chaos_journal(self) -> Path:
        return self.path / "chaos.json"

    @property
    def verdict(self) -> Path:
        return self.path / "verdict.json"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def connection(self) -> Path:
        return self.path / "connection.json"

    @property
    def processes(self) -> Path:
        """Process ids of this run's children, for faults that act on them."""
        return self.path / "processes.json"

    @property
    def faults(self) -> Path:
        return self.history / FAULTS_FILE

    @property
    def marks(self) -> Path:
        return self.history / MARKS_FILE

    @property
    def ledger(self) -> Path:
        """Written by the fakes alone: what their model servers sent."""
        return self.history / LEDGER_FILE

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"


def create(reports: Path, experiment: Path, now: datetime | None = None) -> RunDir:
    """``<reports>/<experiment>/<utc-start>/`` with its folders; a second run within the second gets a suffix."""
    now = now or datetime.now(UTC)
    stem = re.sub(r"[^\w.-]+", "-", experiment.stem)
    base = reports / stem / now.strftime("%Y-%m-%dT%H-%M-%SZ")
    path, n = base, 1
    try:
        base.parent.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                path.mkdir()
                break
            except FileExistsError:
                n += 1
                path = base.with_name(f"{base.name}-{n}")
        for folder in ("spec", "history", "logs", "load"):
            (path / folder).mkdir()
    except OSError as error:
        raise BadInput(
            f"cannot write the run's folder {path}: {error.strerror or error}",
            where=Where(str(reports)),
            hint="make the reports folder writable, or name another one with --reports",
        ) from error
    return RunDir(path)


def open_existing(path: Path) -> RunDir:
    """A folder that a run left. BadInput when it is none."""
    if not path.is_dir() or not (path / "history").is_dir():
        raise BadInput(
            "this is not the folder of a run: it has no history/",
            where=Where(str(path)),
            hint="give the folder that `gpu-harness run` printed, e.g. reports/<experiment>/<utc-start>",
        )
    return RunDir(path)


def keep_spec(run_dir: RunDir, experiment: Path, files: Iterable[Path]) -> str:
    """Copies the experiment and the files it refers to exactly as used, in the same places relative to each other, so
    that the copy is a working experiment; but for secrets, whose values are hidden. Returns the experiment's path
    relative to ``spec/``."""
    originals = [experiment.resolve(), *(f.resolve() for f in files)]
    root = Path(os.path.commonpath([f.parent for f in originals]))
    for file in dict.fromkeys(originals):
        to = run_dir.path / "spec" / file.relative_to(root)
        to.parent.mkdir(parents=True, exist_ok=True)
        if (hidden := _without_secrets(file)) is None:
            shutil.copyfile(file, to)
        else:
            to.write_text(hidden)
    return str(experiment.resolve().relative_to(root))


def _without_secrets(file: Path) -> str | None:
    """A manifest or an experiment as text with its secrets hidden; None where it has none, or is no YAML."""
    if file.suffix not in (".yaml", ".yml", ".json"):
        return None
    try:
        documents = list(yaml.safe_load_all(file.read_text()))
    except (yaml.YAMLError, UnicodeDecodeError):
        return None
    clean = [_hide(document) for document in documents]
    return None if clean == documents else yaml.safe_dump_all(clean, sort_keys=False)


def _hide(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    if "kind" not in document:
        return experiment_without_secrets(document)
    return without_secrets(document)
