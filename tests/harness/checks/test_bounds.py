from __future__ import annotations

import pytest

from harness.checks.bounds import judge_share, lower, n_to_pass, upper
from harness.verdict import Status


@pytest.mark.parametrize(("quantile", "n"), [(0.5, 5), (0.9, 29), (0.95, 59), (0.99, 299), (0.999, 2995)])
def test_with_none_late_the_known_sample_sizes_pass_and_one_fewer_does_not(quantile: float, n: int) -> None:
    allowed = 1 - quantile
    assert n_to_pass(0, allowed) == n
    assert judge_share(0, n, allowed).status is Status.PASS
    assert judge_share(0, n - 1, allowed).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("late", "n", "low", "high"),
    [
        (1, 20, 0.00256, 0.21611),  # Clopper and Pearson's one-sided 95 % limits (two-sided 90 %)
        (5, 100, 0.01991, 0.10225),
        (10, 10, 0.74113, 1.0),
        (0, 10, 0.0, 0.25887),
    ],
)
def test_against_published_limits(late: int, n: int, low: float, high: float) -> None:
    assert (lower(late, n), upper(late, n)) == pytest.approx((low, high), abs=2e-5)


def test_surely_kept_surely_broken_and_in_between() -> None:
    assert judge_share(1, 93, 0.05).status is Status.PASS
    assert judge_share(20, 80, 0.05).status is Status.FAIL
    between = judge_share(5, 100, 0.04)
    assert between.status is Status.UNKNOWN
    assert between.n_needed is not None
    share = round(0.05 * between.n_needed)
    assert judge_share(share, between.n_needed, 0.04).status is not Status.UNKNOWN


def test_no_number_settles_a_share_that_is_just_the_limit() -> None:
    assert judge_share(5, 100, 0.05).n_needed is None


def test_n_to_pass_is_the_fewest() -> None:
    n = n_to_pass(3, 0.05)
    assert n is not None
    assert upper(3, n) <= 0.05 < upper(3, n - 1)


def test_nothing_measured_is_unknown() -> None:
    claim = judge_share(0, 0, 0.05)
    assert (claim.status, claim.lower, claim.upper, claim.n_needed) == (Status.UNKNOWN, None, None, 59)


def test_a_limit_that_allows_none_late_is_never_surely_kept() -> None:
    assert judge_share(0, 1000, 0.0).status is Status.UNKNOWN
    assert n_to_pass(0, 0.0) is None
