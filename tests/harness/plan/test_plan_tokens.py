"""Token lengths: tables are followed, cut where said, and fitted within the stated error."""

from __future__ import annotations

import numpy as np
import pytest

from harness.plan.chance import Chance
from harness.plan.fit import distance, fit_quantiles
from harness.plan.tokens import draw_tokens, quantile_tokens
from harness.spec.tokens import FixedTokens, QuantileTokens

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
