"""From a run's folder to its verdict and report. Needs no cluster: the same folder gives the same bytes again."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.checks.judge import explained, judge
from harness.checks.root_cause import by_rank, root_cause
from harness.checks.serialise import verdict_to_json
from harness.compare.baseline import Baseline
from harness.errors import BadInput, Where
from harness.history.reader import History
from harness.printable import line
from harness.replacing import replace_text
from harness.report.write import write_report
from harness.run.rundir import RunDir
from harness.spec.experiment import Experiment, load_experiment
from harness.verdict import Status, Verdict, merge

NARROW = 60
"""Columns of a terminal below which a table has no room left for its sentences."""
_CAUSE = 1_000
COLOURS = {Status.PASS: "green", Status.FAIL: "red", Status.UNKNOWN: "yellow"}


def judge_run(run_dir: RunDir, history: History, baseline: Baseline | None = None) -> Verdict:
    """Judges what that folder recorded by the checks of the experiment as used, and against runs of before where such
    are given; ``write_verdict`` keeps the answer."""
    spec = _experiment(run_dir.path / "spec", history.run.experiment)
    if spec is None:
        raise BadInput(
            "this run has no copy of its experiment, so there is nothing to judge it by",
            where=Where(str(run_dir.path / "spec")),
            hint="the folder is incomplete: copy it whole",
        )
    verdict = judge(history, spec.settings.checks)
    return (
        verdict
        if baseline is None
        else explained(history, merge([baseline.finding(history, verdict), *verdict.findings]))
    )


def write_verdict(run_dir: RunDir, verdict: Verdict) -> None:
    replace_text(run_dir.verdict, verdict_to_json(verdict))


def _experiment(folder: Path, name: str) -> Experiment | None:
    """A killed harness leaves no run.json that names it, but only one file under ``spec/`` is an experiment."""
    if name:
        return load_experiment(folder / name) if (folder / name).is_file() else None
    found: list[Experiment] = []
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".yaml", ".yml", ".json")):
        with contextlib.suppress(BadInput):
            found.append(load_experiment(path))
    return found[0] if len(found) == 1 else None


def report_run(run_dir: RunDir, history: History, verdict: Verdict) -> None:
    write_report(run_dir.path, history, verdict, _read_plan(run_dir.plan))


def print_verdict(verdict: Verdict, console: Console | None = None) -> None:
    """The table of findings: status, sentence, key figures. Below each other where a table has no room for them."""
    console = console or Console()
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("finding", overflow="fold")
    for finding in by_rank(verdict):
        status = finding.judged or finding.status
        sentence = line(finding.sentence) + (f" [{line(finding.because)}]" if finding.because else "")
        row = (Text(finding.check), Text(status.value, style=COLOURS[status]), Text(sentence))
        if console.width < NARROW:
            console.print(*row)
        else:
            table.add_row(*row)
    if table.rows:
        console.print(table)
    if cause := root_cause(verdict):
        console.print(Text(line(cause, _CAUSE), style="bold"))
    console.print(
        Text(f"verdict: {verdict.status.value}", style=f"bold {COLOURS[verdict.status]}"),
        Text(line(verdict.sentence, _CAUSE)),
    )


def _read_plan(path: Path) -> dict[str, object]:
    try:
        plan = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return plan if isinstance(plan, dict) else {}
