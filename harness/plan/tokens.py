"""How long prompts and answers are. Drawn independently of each other; only a trace keeps them together."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from harness.plan.chance import Chance
from harness.plan.exact import exp, ln
from harness.spec.tokens import (
    DrawnTokens,
    FixedTokens,
    HistogramTokens,
    LogNormalTokens,
    NormalTokens,
    QuantileTokens,
)


def draw_tokens(tokens: DrawnTokens, count: int, chance: Chance) -> NDArray[np.int64]:
    if isinstance(tokens, FixedTokens):
        return np.full(count, tokens.tokens, dtype=np.int64)
    draw = _drawer(tokens, chance)
    return np.fromiter((draw() for _ in range(count)), dtype=np.int64, count=count)


def _drawer(tokens: DrawnTokens, chance: Chance) -> Callable[[], int]:
    match tokens:
        case QuantileTokens():
            return lambda: quantile_tokens(tokens, chance.uniform())
        case NormalTokens():
            return lambda: _bounded(tokens.mean_tokens + tokens.sd_tokens * chance.normal(), tokens)
        case LogNormalTokens():
            middle = ln(tokens.median_tokens)
            # e^60 is far beyond any bound, and keeps the exponential within what a float holds.
            return lambda: _bounded(exp(min(60.0, middle + tokens.sigma * chance.normal())), tokens)
        case HistogramTokens():
            return _histogram(tokens, chance)
        case _:
            return lambda: tokens.tokens


def quantile_tokens(table: QuantileTokens, q: float) -> int:
    """The table's value at quantile ``q``, rounded half up, cut at ``max_tokens``."""
    value = math.floor(between(table.points, q) + 0.5)
    return value if table.max_tokens is None else min(value, table.max_tokens)


def between(points: Sequence[tuple[float, float]], q: float) -> float:
    """The table's value at quantile ``q``, straight between two points."""
    upper = min(bisect_right(points, q, key=lambda point: point[0]), len(points) - 1)
    (q0, low), (q1, high) = points[upper - 1], points[upper]
    return low + (high - low) * ((q - q0) / (q1 - q0))


def _bounded(length: float, tokens: NormalTokens | LogNormalTokens) -> int:
    value = max(tokens.min_tokens, math.floor(length + 0.5))
    return value if tokens.max_tokens is None else min(value, tokens.max_tokens)


def _histogram(tokens: HistogramTokens, chance: Chance) -> Callable[[], int]:
    pick = Weighted([weight for _, _, weight in tokens.bins])

    def draw() -> int:
        first, last, _ = tokens.bins[pick(chance.uniform())]
        return first + math.floor(chance.uniform() * (last - first + 1))

    return draw


class Weighted:
    """Picks an index by its weight, from a uniform number."""

    def __init__(self, weights: Sequence[float]) -> None:
        self._edges: list[float] = []
        total = 0.0
        for weight in weights:
            total += weight
            self._edges.append(total)
        self._last = max(index for index, weight in enumerate(weights) if weight > 0)

    def __call__(self, u: float) -> int:
        return min(bisect_right(self._edges, u * self._edges[-1]), self._last)
