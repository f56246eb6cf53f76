"""One run in a handful of figures, read from its folder: the outcome of a run, for setting it beside others."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from harness.checks.rows import Rows, nearest_rank
from harness.checks.serialise import load_verdict
from harness.errors import BadInput, Where
from harness.history.run_info import RunInfo
from harness.history.tables import REQUESTS_FILE, RUN_FILE
from harness.verdict import Finding, Role, Status, Verdict

_LATENCIES = ("ttft_ms", "e2e_ms", "tpot_ms")


@dataclass(frozen=True, slots=True)
class Measure:
    """All are better low. ``slack`` is what a single run may be worse by without a word."""

    words: str
    judged: bool = False
    slack: float = 0.0


MEASURES: dict[str, Measure] = {
    # At most six are judged: with five runs a side the least p of an exact test is 2/252, and six times that is 0.048.
    "ttft_ms_p95": Measure("TTFT p95, ms; failed requests count as infinite", judged=True),
    "tpot_ms_p95": Measure("TPOT p95 of whole answers, ms", judged=True),
    "not_ok_ratio": Measure("share of requests not answered whole", judged=True, slack=0.005),
    "streams_lost": Measure("requests that were cut", judged=True),
    "added_ready_s_worst": Measure("slowest added replica, scenario s", judged=True),
    "cost_per_million_tokens": Measure("cost per million output tokens", judged=True),
    "ttft_ms_p50": Measure("TTFT p50, ms"),
    "ttft_ms_p99": Measure("TTFT p99, ms"),
    "tpot_ms_p50": Measure("TPOT p50, ms"),
    "e2e_ms_p95": Measure("whole answers, p95, ms"),
    "added_ready_s_median": Measure("median added replica, scenario s"),
    "replacement_ready_s_worst": Measure("slowest replacement, scenario s"),
    "return_s_worst": Measure("back to the floor, scenario s"),
    "steady_s": Measure("steady again after the fault, scenario s"),
    "refused_s_max": Measure("longest held back by a budget, scenario s"),
    "gpu_s_wasted": Measure("GPU seconds held by incomplete gangs"),
    "gpu_idle_ratio": Measure("idle share of GPU time"),
    "nodes_peak": Measure("nodes at most"),
}
_FROM_CHECKS = {
    "added_ready_s_worst": "scale_up", "added_ready_s_median": "scale_up", "replacement_ready_s_worst": "scale_up",
    "return_s_worst": "scale_down", "steady_s": "recovery", "refused_s_max": "pdb", "gpu_s_wasted": "gang",
    "gpu_idle_ratio": "capacity", "nodes_peak": "capacity", "cost_per_million_tokens": "capacity",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """``values`` has what was measured of ``MEASURES``; infinite where a failed request stands for the quantile."""

    path: Path
    info: RunInfo
    verdict: Verdict
    values: dict[str, float]

    @property
    def invalid(self) -> list[str]:
        """Validity checks that did not pass: what was measured then is no measure of the system."""
        found = (f for f in self.verdict.findings if f.role is Role.VALIDITY and f.status is not Status.PASS)
        return [finding.check for finding in found]


def read_run(path: Path) -> Run:
    """Raises ``BadInput`` for a folder that was not judged, or that has no readable history."""
    verdict = load_verdict(path / "verdict.json")
    try:
        info = RunInfo.read(path / "history")
        rows = Rows(pd.read_parquet(path / "history" / REQUESTS_FILE))
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(
            f"this run cannot be compared: {error}",
            where=Where(str(path)),
            hint=f"it needs history/{RUN_FILE} and history/{REQUESTS_FILE}",
        ) from error
    return Run(path, info, verdict, measured(rows, verdict))


def measured(rows: Rows, verdict: Verdict) -> dict[str, float]:
    return _of_requests(rows) | _of_findings(verdict)


def _of_requests(rows: Rows) -> dict[str, float]:
    asked = ~rows.hung_up_by_plan
    if not asked.any():
        return {}
    values: dict[str, float | None] = {
        "not_ok_ratio": 1 - float(rows.ok[asked].mean()),
        "streams_lost": float((rows.cut & asked).sum()),
    }
    for name in _LATENCIES:
        counted = asked & rows.streamed & ((rows.ok & (rows.numbers("output_tokens") > 1)) | (name != "tpot_ms"))
        took = np.where(rows.ok, rows.latency(name), np.nan)[counted]
        ordered = np.where(np.isnan(took), math.inf, took)
        for q in (50, 95, 99):
            values[f"{name}_p{q}"] = nearest_rank(ordered, q / 100)
    return {name: value for name, value in values.items() if value is not None and name in MEASURES}


def _of_findings(verdict: Verdict) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, check in _FROM_CHECKS.items():
        numbers = [_number(finding, name) for finding in verdict.findings if finding.check == check]
        known = [number for number in numbers if number is not None]
        if known:
            found[name] = max(known)
    return found


def _number(finding: Finding, name: str) -> float | None:
    value = finding.numbers.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _folder(run: Run) -> str:
    return run.path.parent.name


LABELS: dict[str, Callable[[Run], str]] = {
    "folder": _folder,
    "experiment": lambda run: run.info.experiment,
    "commit": lambda run: run.info.commit[:12] + ("+" if run.info.dirty else ""),
    "target": lambda run: run.info.target,
    "seed": lambda run: str(run.info.seed),
    "run": lambda run: f"{run.path.parent.name}/{run.path.name}",
}
"""By what runs are put on a side, next to the folder that was named on the command line."""
