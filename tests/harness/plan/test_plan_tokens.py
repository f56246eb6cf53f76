"""Token lengths: tables are followed, cut where said, and fitted within the stated error."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.plan.chance import Chance
from harness.plan.fit import distance, fit_quantiles
from harness.plan.tokens import draw_tokens, quantile_tokens
from harness.spec.tokens import (
    DrawnTokens,
    FixedTokens,
    HistogramTokens,
    LogNormalTokens,
    NormalTokens,
    QuantileTokens,
)

TABLE = QuantileTokens(kind="quantiles", points=((0, 10), (0.5, 20), (0.9, 20), (1, 120)), max_tokens=100)


def test_fixed() -> None:
    assert draw_tokens(FixedTokens(kind="fixed", tokens=7), 3, Chance(1, "x")).tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    "q, tokens",
    [(0, 10), (0.25, 15), (0.26, 15), (0.28, 16), (0.5, 20), (0.7, 20), (0.9, 20), (0.95, 70), (0.999, 100), (1, 100)],
)
def test_between_the_points_are_straight_lines(q: float, tokens: int) -> None:
    assert quantile_tokens(TABLE, q) == tokens


def test_draws_follow_the_table() -> None:
    drawn = draw_tokens(TABLE, 20_000, Chance(1, "x"))
    assert (drawn.min(), drawn.max()) == (10, 100)
    assert np.mean(drawn == 20) == pytest.approx(0.4 + 0.025, abs=0.02)
    assert np.mean(drawn == 100) == pytest.approx(0.02, abs=0.006)


def test_a_fit_is_as_near_as_it_says() -> None:
    chance = Chance(3, "recorded")
    # Two groups of lengths, as answers of real services have.
    recorded = sorted(
        20 + int(chance.exponential() * 60) if chance.uniform() < 0.6 else 380 + int(40 * chance.uniform())
        for _ in range(4000)
    )
    points = fit_quantiles(recorded, 0.01)
    assert distance(points, recorded)[0] <= 0.01
    assert len(points) < 40
    assert (points[0], points[-1]) == ((0.0, recorded[0]), (1.0, recorded[-1]))
    assert len(fit_quantiles(recorded, 0.05)) < len(points)


def test_a_fit_needs_lengths() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        fit_quantiles([0, 5], 0.01)


def lengths(tokens: DrawnTokens, count: int = 20_000) -> list[int]:
    drawn = draw_tokens(tokens, count, Chance(1, "x")).tolist()
    assert drawn == draw_tokens(tokens, count, Chance(1, "x")).tolist()
    return sorted(drawn)


def test_normal_has_its_mean_and_spread_and_keeps_its_bounds() -> None:
    drawn = lengths(NormalTokens(kind="normal", mean_tokens=200, sd_tokens=50))
    assert sum(drawn) / len(drawn) == pytest.approx(200, abs=6 * 50 / math.sqrt(len(drawn)))
    assert drawn[int(0.8413 * len(drawn))] == pytest.approx(250, abs=3)
    bounded = lengths(NormalTokens(kind="normal", mean_tokens=10, sd_tokens=50, min_tokens=5, max_tokens=40))
    assert (bounded[0], bounded[-1]) == (5, 40)
    assert bounded.count(5) / len(bounded) == pytest.approx(0.456, abs=0.02)


def test_log_normal_has_its_median_and_spread() -> None:
    drawn = lengths(LogNormalTokens(kind="log_normal", median_tokens=300, sigma=1))
    assert drawn[len(drawn) // 2] == pytest.approx(300, rel=0.05)
    assert drawn[int(0.8413 * len(drawn))] == pytest.approx(300 * math.e, rel=0.05)
    assert lengths(LogNormalTokens(kind="log_normal", median_tokens=300, sigma=1, max_tokens=500))[-1] == 500


def test_histogram_has_its_weights_and_both_ends_of_its_bins() -> None:
    drawn = lengths(HistogramTokens(kind="histogram", bins=((1, 4, 3), (5, 9, 0), (10, 10, 1))))
    assert set(drawn) == {1, 2, 3, 4, 10}
    assert drawn.count(10) / len(drawn) == pytest.approx(0.25, abs=0.02)
    assert drawn.count(4) / len(drawn) == pytest.approx(0.75 / 4, abs=0.02)
