"""The shipped profile keeps its promises: bursts with every seed, and lengths as in the trace it names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.plan.fit import distance, fit_quantiles
from harness.plan.make import schedule_of_profile
from harness.plan.trace import read_rows
from harness.spec.loadprofile import LoadProfile, load_profile
from harness.spec.tokens import QuantileTokens

ROOT = Path(__file__).resolve().parents[3]
TRACE = ROOT.parent / "shared" / "data" / "azure-llm-2023-conv.csv"
TIME_SCALE = 15


@pytest.fixture(scope="module")
def profile() -> LoadProfile:
    return load_profile(ROOT / "loadprofiles" / "chat-bursts.yaml")


@pytest.fixture(scope="module")
def lengths() -> dict[str, list[int]]:
    if not TRACE.is_file():
        pytest.skip(f"the trace the profile was fitted from is not there: {TRACE}")
    rows = list(read_rows(TRACE))
    return {"prompt": [row.prompt_tokens for row in rows], "output": [row.output_tokens for row in rows]}


def test_two_hundred_seeds_burst_as_promised(profile: LoadProfile) -> None:
    assert profile.peak_to_mean_min == 4
    low = {}
    for seed in range(1, 201):
        stats = schedule_of_profile(profile, TIME_SCALE, seed).stats(profile.duration_s / TIME_SCALE)
        ratio = stats["peak_to_mean"]
        assert isinstance(ratio, float)
        if ratio < 4:
            low[seed] = ratio
    assert low == {}


def test_burst_demand(profile: LoadProfile) -> None:
    """About 32 requests per clock second, in both windows."""
    counts = []
    for seed in range(1, 51):
        t = schedule_of_profile(profile, TIME_SCALE, seed).t_ns / 1e9
        counts.append([int(((t >= a / TIME_SCALE) & (t < (a + 60) / TIME_SCALE)).sum()) for a in (100, 300)])
    assert np.mean(counts, axis=0) / 4 == pytest.approx([32, 32], rel=0.06)


@pytest.mark.parametrize("part", ["prompt", "output"])
def test_lengths_are_those_of_the_trace(profile: LoadProfile, lengths: dict[str, list[int]], part: str) -> None:
    table = getattr(profile.tokens, part)
    assert isinstance(table, QuantileTokens)
    assert profile.tokens.fitted_from is not None
    assert profile.tokens.fitted_from.rows == len(lengths[part])
    assert table.points == fit_quantiles(lengths[part], 0.01)
    assert distance(table.points, sorted(lengths[part]))[0] <= 0.01


@pytest.mark.parametrize("part, share", [("prompt", 0.021), ("output", 0.051)])
def test_what_is_cut_off(profile: LoadProfile, lengths: dict[str, list[int]], part: str, share: float) -> None:
    longest = getattr(profile.tokens, part).max_tokens
    assert np.mean(np.array(lengths[part]) > longest) == pytest.approx(share, abs=0.001)


def test_drawn_lengths_have_the_traces_mean(profile: LoadProfile, lengths: dict[str, list[int]]) -> None:
    schedules = [schedule_of_profile(profile, TIME_SCALE, seed) for seed in range(1, 41)]
    for part in ("prompt", "output"):
        drawn = np.concatenate([getattr(s, f"{part}_tokens") for s in schedules])
        recorded = np.minimum(lengths[part], getattr(profile.tokens, part).max_tokens)
        assert drawn.mean() == pytest.approx(recorded.mean(), rel=0.03)
