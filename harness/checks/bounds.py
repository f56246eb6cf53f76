"""One-sided 95 % Clopper-Pearson bounds of a proportion, and what they say of a limit (design, 4.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.verdict import Status

CONFIDENCE = 0.95
_N_MAX = 10_000_000
"""Beyond this a wish for more requests helps nobody."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The judgement of "at most ``allowed`` of all are late", from ``late`` of ``n``."""

    n: int
    late: int
    allowed: float
    lower: float | None
    upper: float | None
    status: Status
    n_needed: int | None
    """For UNKNOWN: how many requests would settle it if the share of late ones stayed; None when no number would."""


def judge_share(late: int, n: int, allowed: float) -> Claim:
    """PASS when surely at most ``allowed`` are late, FAIL when surely more, else UNKNOWN."""
    if n == 0:
        return Claim(0, 0, allowed, None, None, Status.UNKNOWN, n_to_pass(0, allowed))
    low, high = lower(late, n), upper(late, n)
    if high <= allowed:
        return Claim(n, late, allowed, low, high, Status.PASS, None)
    if low > allowed:
        return Claim(n, late, allowed, low, high, Status.FAIL, None)
    return Claim(n, late, allowed, low, high, Status.UNKNOWN, _n_to_settle(late, n, allowed))


def upper(late: int, n: int) -> float:
    """The largest share of late ones that would still show ``late`` or fewer in 5 % of runs."""
    if late >= n:
        return 1.0
    if late == 0:
        return 1.0 - math.pow(1.0 - CONFIDENCE, 1.0 / n)
    return _beta_quantile(late + 1, n - late, CONFIDENCE)


def lower(late: int, n: int) -> float:
    if late <= 0:
        return 0.0
    if late >= n:
        return math.pow(1.0 - CONFIDENCE, 1.0 / n)
    return _beta_quantile(late, n - late + 1, 1.0 - CONFIDENCE)


def n_to_pass(late: int, allowed: float) -> int | None:
    """The fewest requests with which ``late`` late ones still pass: none late of 299 for a p99, of 59 for a p95."""
    if allowed <= 0:
        return None
    if late == 0:
        n = max(1, math.ceil(math.log(1.0 - CONFIDENCE) / math.log1p(-allowed))) if allowed < 1 else 1
        return n if upper(0, n) <= allowed else n + 1
    low, high = late, late + 1
    while upper(late, high) > allowed:
        low, high = high, high * 2
        if high > _N_MAX:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if upper(late, middle) <= allowed else (middle, high)
    return high


def _n_to_settle(late: int, n: int, allowed: float) -> int | None:
    """By doubling and halving: the bounds close in on the share as ``n`` grows, so a coarse search is enough."""
    if late == 0:
        return n_to_pass(0, allowed)
    share = late / n

    def settled(size: int) -> bool:
        many = round(share * size)
        return upper(many, size) <= allowed or lower(many, size) > allowed

    low, high = n, n * 2
    while not settled(high):
        low, high = high, high * 2
        if high > _N_MAX:
            return None
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high


def _beta_quantile(a: float, b: float, p: float) -> float:
    # Imported here: scipy costs a second, and a report or a run without late requests never needs it.
    from scipy.special import betaincinv  # type: ignore[import-untyped]  # scipy ships no types

    return float(betaincinv(a, b, p))
