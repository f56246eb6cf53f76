"""Which requests a failing ``slo`` found not good: by them it is told what can have made it fail."""

from __future__ import annotations

import numpy as np

from harness.checks.rows import Mask
from harness.checks.slo import METRICS
from harness.diagnosis.case import Case

_ORDER = ("tpot_ms", "itl_ms", "ttft_ms", "ttft_sent_ms", "e2e_ms")


def limits(case: Case) -> dict[str, float]:
    """Of the metrics that a failing ``slo`` judged, in the order in which one hides another."""
    found: dict[str, float] = {}
    for finding in case.findings:
        for key, value in finding.numbers.items() if finding.check == "slo" and finding.check in case.failed else ():
            metric = key.removesuffix("_limit").rpartition("_")[0]
            if key.endswith("_limit") and metric in METRICS and isinstance(value, int | float):
                found[metric] = max(float(value), found.get(metric, 0.0))
    return {metric: found[metric] for metric in _ORDER if metric in found}


def late(case: Case) -> Mask:
    """Whole, and beyond a limit."""
    over = np.zeros(len(case.rows), dtype=np.bool_)
    for metric, limit in limits(case).items():
        over |= np.nan_to_num(case.rows.latency(metric)) > limit
    return over & case.rows.ok & _judged(case)


def not_good(case: Case) -> Mask:
    return late(case) | (_judged(case) & ~case.rows.ok & ~case.rows.hung_up_by_plan)


def _judged(case: Case) -> Mask:
    """The rows of the phases in which it failed."""
    phases = {f.numbers.get("phase") for f in case.findings if f.check == "slo" and f.check in case.failed}
    if "all" in phases:
        return np.ones(len(case.rows), dtype=np.bool_)
    return case.rows.among("phase", {str(phase) for phase in phases})
