"""One finding in full, for people: the story, the figures, and the evidence as a table."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.checks.judge import CHECKS, VALIDITY
from harness.checks.units import count, scenario_s
from harness.errors import BadInput, ExitCode, Where
from harness.history.reader import History
from harness.printable import line
from harness.report.story_part import facts_of
from harness.run.judging import COLOURS, judge_run
from harness.run.rundir import RunDir
from harness.spec.document import did_you_mean
from harness.verdict import Diagnosis, Evidence, Finding, Status, Value

_STORY, _CELL = 6_000, 300
_CODES = {Status.PASS: ExitCode.PASS, Status.FAIL: ExitCode.FAIL, Status.UNKNOWN: ExitCode.UNKNOWN}


def explain_finding(run_dir: RunDir, check: str, console: Console | None = None) -> ExitCode:
    """Judges the recorded history anew and prints what ``check`` found. The exit code is that of the finding, or the
    worst where an experiment asks for the same check twice."""
    if check not in CHECKS and check not in VALIDITY:
        raise BadInput(
            f"there is no check {check!r}", where=Where("CHECK"), hint=did_you_mean(check, [*CHECKS, *VALIDITY])
        )
    history = History.load(run_dir.path)
    verdict = judge_run(run_dir, history)
    found = [finding for finding in verdict.findings if finding.check == check]
    if not found:
        asked = ", ".join(dict.fromkeys(finding.check for finding in verdict.findings))
        raise BadInput(
            f"this run was not judged by {check}", where=Where(str(run_dir.path)), hint=f"it was by: {asked}"
        )
    console = console or Console()
    for finding in found:
        print_finding(console, history, finding)
        for cause in verdict.causes:
            if check in cause.explains and finding.status is Status.FAIL:
                print_cause(console, history, cause)
    codes = {_CODES[finding.judged or finding.status] for finding in found}
    return next(code for code in (ExitCode.FAIL, ExitCode.UNKNOWN, ExitCode.PASS) if code in codes)


def print_finding(console: Console, history: History, finding: Finding) -> None:
    status = finding.judged or finding.status
    times = f"(put to the test {count(finding.exercised, 'time')})"
    console.print(Text(f"{finding.check}:"), Text(status.value, style=f"bold {COLOURS[status]}"), Text(times))
    console.print(Text(line(finding.sentence)))
    if finding.because:
        console.print(Text(f"judged {status.value} because {line(finding.because)}"))
    if finding.story:
        console.print(Text(f"\n{line(finding.story, _STORY)}"))
    if finding.numbers:
        table = Table("figure", "value", box=None, pad_edge=False)
        for name, value in finding.numbers.items():
            table.add_row(Text(line(name)), Text(_show(value)))
        console.print()
        console.print(table)
    console.print()
    console.print(_evidence(history, finding.evidence) if finding.evidence else Text("no evidence rows"))


def print_cause(console: Console, history: History, cause: Diagnosis) -> None:
    """The cause that explains a fail, with what shows it."""
    console.print(Text("\ncause:", style="bold"), Text(line(cause.sentence, _STORY)))
    for name, text in facts_of(cause):
        console.print(Text(f"{name}: {line(text, _STORY)}"))
    console.print()
    console.print(_evidence(history, cause.evidence))


def _evidence(history: History, rows: tuple[Evidence, ...]) -> Table:
    """A column for each fact that any row has; times in scenario seconds since the load began."""
    facts = list(dict.fromkeys(name for row in rows for name in row.facts))
    table = Table("at, s", "row", "what was seen", *(line(name) for name in facts), box=None, pad_edge=False)
    for row in rows:
        at = (
            ""
            if row.t_ns is None
            else f"{scenario_s(row.t_ns - history.run.load_start_ns, history.run.time_scale):.1f}"
        )
        cells = [_show(row.facts[name]) if name in row.facts else "" for name in facts]
        table.add_row(*(Text(line(text, _CELL)) for text in (at, row.ref, row.text, *cells)))
    return table


def _show(value: Value) -> str:
    if value is None:
        return "not measured"
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else line(str(value))
