"""One run held against runs of before: worse than all of them, by more than they differ themselves, is a regression.

No test can claim much of a single run: that it is the worst of six happens by chance once in six times. So the fence
stands further out: the worst of at least five baseline runs, and their whole range beyond it. Of normal noise one run
in 70 is beyond that fence with five baseline runs, one in 400 with eight, one in 1,000 with ten, for each measure; of
noise with a long tail (exponential), one in 18, 41 and 62.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.checks.rows import rows_of
from harness.compare.measures import MEASURES, Run, measured
from harness.compare.printing import shown
from harness.compare.sides import RUNS_MIN, gather, middle
from harness.errors import BadInput, Where
from harness.verdict import Evidence, Finding, Role, Status, Value, Verdict

if TYPE_CHECKING:
    from harness.history.reader import History

CHECK = "baseline"
NEEDS = ("load_offered", "machine_did_not_stall", "steady_before")
RELATIVE_MIN = 0.1
"""Of the baseline's median: less than this is no regression, however equal the baseline runs are."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Runs of before; ``left_out`` of them were not valid."""

    runs: tuple[Run, ...]
    left_out: int = 0

    @classmethod
    def read(cls, folders: Sequence[Path]) -> Baseline:
        sides = gather(folders, "run")
        return cls(tuple(run for side in sides for run in side.runs), sum(len(side.left_out) for side in sides))

    def finding(self, history: History, verdict: Verdict) -> Finding:
        """Raises ``BadInput`` for a baseline of another experiment. A run is never held against itself."""
        others = sorted({r.info.experiment for r in self.runs if r.info.experiment != history.run.experiment})
        if others:
            raise BadInput(
                f"the baseline has runs of {', '.join(others)}, this is a run of {history.run.experiment}",
                where=Where("--baseline"),
                hint="give runs of the same experiment",
            )
        itself = history.dir.resolve() if history.dir else None
        runs = [run for run in self.runs if run.path.resolve() != itself]
        return against(measured(rows_of(history), verdict), runs, self.left_out)


def against(values: dict[str, float], runs: Sequence[Run], left_out: int = 0) -> Finding:
    """UNKNOWN with fewer than five valid baseline runs, or where no judged measure is known of both."""
    numbers: dict[str, Value] = {"baseline_runs": len(runs), "baseline_runs_not_valid": left_out}
    beyond: list[tuple[str, float, list[float]]] = []
    compared = 0
    for name in (name for name, measure in MEASURES.items() if measure.judged):
        before = [run.values[name] for run in runs if name in run.values]
        if name not in values or len(before) < RUNS_MIN:
            continue
        compared += 1
        numbers |= {
            name: values[name],
            f"{name}_baseline_median": middle(before),
            f"{name}_baseline_worst": max(before),
        }
        if _beyond(name, values[name], before):
            beyond.append((name, values[name], before))
    if len(runs) < RUNS_MIN:
        status, sentence = Status.UNKNOWN, f"{len(runs)} valid baseline runs, but at least {RUNS_MIN} are needed"
    elif not compared:
        status, sentence = Status.UNKNOWN, "nothing that was measured of this run was measured of the baseline"
    elif beyond:
        status = Status.FAIL
        sentence = f"a regression: worse than all {len(runs)} baseline runs, and beyond their range: " + "; ".join(
            map(_words, beyond)
        )
    else:
        status = Status.PASS
        sentence = f"{compared} measures are within what {len(runs)} baseline runs vary by, or better"
    evidence = tuple(
        Evidence(f"run:{run.path.parent.name}/{run.path.name}", None, f"{name} was {shown(run.values[name])}",
                 {"measure": name, "value": run.values[name]})
        for name, _, _ in beyond for run in runs if name in run.values
    )  # fmt: skip
    return Finding(CHECK, Role.CHECK, status, sentence, compared, numbers, evidence, NEEDS, story=_story(beyond, runs))


def _beyond(name: str, value: float, before: Sequence[float]) -> bool:
    worst = max(before)
    if not math.isfinite(worst):
        return False
    margin = max(worst - min(before), RELATIVE_MIN * abs(middle(before)), MEASURES[name].slack)
    return value > worst + margin


def _words(found: tuple[str, float, list[float]]) -> str:
    name, value, before = found
    return f"{name} is {shown(value)} (baseline {shown(min(before))} to {shown(max(before))})"


def _story(beyond: Sequence[tuple[str, float, list[float]]], runs: Sequence[Run]) -> str:
    if not beyond:
        return ""
    commits = sorted({run.info.commit[:12] for run in runs if run.info.commit}) or ["not recorded"]
    return (
        f"Promised: the run is no worse than {len(runs)} runs of before. What happened: "
        f"{'; '.join(map(_words, beyond))}. Objects: the baseline runs are of commit {', '.join(commits[:5])}. First "
        "cause: a comparison of outcomes does not tell. What to change: see the other findings, and what changed since."
    )
