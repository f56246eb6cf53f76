"""Fits a table of quantiles to recorded token lengths, as the shipped load profiles use them.

From the two ends on, the quantile is added at which the table's distribution is furthest from the recorded one, until
no length is off by more than ``error_max`` (the Kolmogorov-Smirnov distance). So flat parts cost few points, and the
kinks that real traffic has (texts of nearly one length) are kept.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from harness.plan.tokens import quantile_tokens
from harness.spec.tokens import QuantileTokens

_GRID = 200
"""Points stand on multiples of 1/200: fine enough for an error of 0.01, and easy to read."""
_PROBES = 4000

Points = tuple[tuple[float, int], ...]


def fit_quantiles(lengths: Sequence[int], error_max: float) -> Points:
    ordered = sorted(lengths)
    if not ordered or ordered[0] < 1:
        raise ValueError("lengths must be at least 1, and there must be some")
    chosen = {0, _GRID}
    while True:
        points = tuple((k / _GRID, _nearest_rank(ordered, k / _GRID)) for k in sorted(chosen))
        error, worst_q = distance(points, ordered)
        candidate = min(set(range(_GRID)) - chosen, key=lambda k: (abs(k / _GRID - worst_q), k), default=None)
        if error <= error_max or candidate is None:
            return points
        chosen.add(candidate)


def distance(points: Sequence[tuple[float, float]], ordered: Sequence[int]) -> tuple[float, float]:
    """The largest difference of the two distribution functions, and the recorded quantile at which it lies."""
    table = QuantileTokens(kind="quantiles", points=tuple((float(q), float(t)) for q, t in points))
    drawn = [quantile_tokens(table, (i + 0.5) / _PROBES) for i in range(_PROBES)]
    worst = (0.0, 0.0)
    for length in sorted({*drawn, *ordered}):
        recorded = bisect_right(ordered, length) / len(ordered)
        error = abs(bisect_right(drawn, length) / _PROBES - recorded)
        worst = max(worst, (error, recorded))
    return worst


def _nearest_rank(ordered: Sequence[int], q: float) -> int:
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]
