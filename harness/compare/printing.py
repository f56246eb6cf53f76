"""A comparison for people, and for programs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.compare.measures import MEASURES
from harness.compare.sides import RUNS_MIN, Change, Side, changes, middle, relative
from harness.errors import ExitCode
from harness.printable import line

COMPARE_SCHEMA = "gpu-harness/compare/1"


def shown(value: float) -> str:
    if not math.isfinite(value):
        return "never"
    return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def print_comparison(sides: Sequence[Side], console: Console | None = None) -> None:
    console = console or Console()
    table = Table("measure", *(line(side.label, 60).replace("[", "\\[") for side in sides), box=None, pad_edge=False)
    table.add_row("valid runs", *(_runs(side) for side in sides))
    table.add_row("verdicts", *(_verdicts(side) for side in sides))
    for name, measure in MEASURES.items():
        if any(side.values(name) for side in sides):
            table.add_row(Text(measure.words), *(_cell(side.values(name)) for side in sides))
    console.print(table)
    for other in sides[1:]:
        for sentence in sentences(sides[0], other):
            console.print(Text(sentence))


def _runs(side: Side) -> str:
    return f"{len(side.runs)}" + (f" ({len(side.left_out)} not valid, left out)" if side.left_out else "")


def _verdicts(side: Side) -> str:
    tally = Counter(run.verdict.status.value for run in (*side.runs, *side.left_out))
    return ", ".join(f"{n} {status}" for status, n in tally.items())


def _cell(values: Sequence[float]) -> str:
    if not values:
        return "not measured"
    span = f" ({shown(min(values))} to {shown(max(values))})" if len(values) > 1 else ""
    return shown(middle(values)) + span


def sentences(first: Side, other: Side) -> list[str]:
    """What changed beyond noise; or that nothing can be claimed, and why."""
    found = changes(first, other)
    head = f"{line(other.label, 60)} against {line(first.label, 60)}"
    judged = [change for change in found if change.p is not None]
    if not judged:
        few = min(len(first.runs), len(other.runs))
        return [
            f"{head}: {few} valid {'run' if few == 1 else 'runs'} on a side; with fewer than {RUNS_MIN} nothing is "
            "claimed"
        ]
    beyond = [change for change in judged if change.beyond_noise]
    if not beyond:
        return [f"{head}: none of {len(judged)} judged measures changed beyond noise"]
    return [f"{head}: {_sentence(change)}" for change in beyond]


def _sentence(change: Change) -> str:
    share = relative(change)
    by = "" if share is None else f", {share:+.0%}"
    return (
        f"{change.measure} got {'worse' if change.worse else 'better'}: median {shown(middle(change.before))} to "
        f"{shown(middle(change.after))}{by} (p {change.p:.3f}, corrected)"
    )


def exit_code(sides: Sequence[Side]) -> ExitCode:
    """FAIL for a regression against the first side, UNKNOWN where nothing can be claimed of any."""
    judged = [change for other in sides[1:] for change in changes(sides[0], other) if change.p is not None]
    if any(change.beyond_noise and change.worse for change in judged):
        return ExitCode.FAIL
    return ExitCode.PASS if judged else ExitCode.UNKNOWN


def to_json(sides: Sequence[Side]) -> str:
    """Equal comparisons are equal bytes. Values that are infinite are null, and counted in ``infinite``."""
    document = {
        "schema": COMPARE_SCHEMA,
        "exit_code": int(exit_code(sides)),
        "sides": [_side(side) for side in sides],
        "comparisons": [
            {
                "first": sides[0].label, "other": other.label, "sentences": sentences(sides[0], other),
                "changes": [_change(change) for change in changes(sides[0], other)],
            }
            for other in sides[1:]
        ],
    }  # fmt: skip
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _side(side: Side) -> dict[str, Any]:
    return {
        "label": side.label,
        "runs": [
            {
                "dir": str(run.path), "valid": not run.invalid, "verdict": run.verdict.status.value,
                "values": {name: _finite(value) for name, value in run.values.items()},
            }
            for run in (*side.runs, *side.left_out)
        ],
    }  # fmt: skip


def _change(change: Change) -> dict[str, Any]:
    values = (*change.before, *change.after)
    return {
        "measure": change.measure, "before": [_finite(v) for v in change.before],
        "after": [_finite(v) for v in change.after], "infinite": sum(1 for v in values if not math.isfinite(v)),
        "relative": relative(change), "p": change.p, "beyond_noise": change.beyond_noise,
        "worse": change.worse if change.beyond_noise else None,
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
