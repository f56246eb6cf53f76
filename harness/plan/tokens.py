"""How long prompts and answers are. Drawn independently of each other; only a trace keeps them together."""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from harness.plan.chance import Chance
from harness.spec.loadprofile import FixedTokens, QuantileTokens, Tokens


def draw_tokens(tokens: Tokens, count: int, chance: Chance) -> NDArray[np.int64]:
    if isinstance(tokens, FixedTokens):
        return np.full(count, tokens.tokens, dtype=np.int64)
    return np.fromiter((quantile_tokens(tokens, chance.uniform()) for _ in range(count)), dtype=np.int64, count=count)


def quantile_tokens(table: QuantileTokens, q: float) -> int:
    """The table's value at quantile ``q``: straight between two points, rounded half up, cut at ``max_tokens``."""
    quantiles = [point[0] for point in table.points]
    upper = min(bisect_right(quantiles, q), len(quantiles) - 1)
    (q0, low), (q1, high) = table.points[upper - 1], table.points[upper]
    value = math.floor(low + (high - low) * ((q - q0) / (q1 - q0)) + 0.5)
    return value if table.max_tokens is None else min(value, table.max_tokens)
