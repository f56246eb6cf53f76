"""Arrival processes keep what they promise, over many seeds; limits stand six standard errors away."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import TypeAdapter

from harness.clock import NS_PER_S
from harness.errors import BadInput
from harness.plan import arrivals as arrivals_module
from harness.plan.arrivals import Span, arrive, planned_rises_ns
from harness.plan.replay import Traces
from harness.plan.schedule import gap_cv, peak_per_s
from harness.spec.arrivals import Arrivals

ADAPTER: TypeAdapter[Arrivals] = TypeAdapter(Arrivals)
SEEDS = range(60)


def read(**arrivals: Any) -> Arrivals:
    return ADAPTER.validate_python(arrivals)


def times(seed: int = 1, duration_s: float = 1000, time_scale: float = 10, **arrivals: Any) -> NDArray[np.int64]:
    return arrive(read(**arrivals), Span(duration_s, time_scale, seed), Traces(Path())).t_ns


def expect_mean(values: list[float], mean: float, sd: float) -> None:
    assert sum(values) / len(values) == pytest.approx(mean, abs=6 * sd / math.sqrt(len(values)))


EVERY_KIND: list[dict[str, Any]] = [
    {"kind": "constant", "rate_per_s": 3.0},
    {"kind": "poisson", "rate_per_s": 3.0},
    {"kind": "gamma", "rate_per_s": 3.0, "gap_cv": 4.0},
    {"kind": "bursts", "rate_per_s": 1.0, "windows": [{"start_s": 100.0, "end_s": 200.0, "added_per_s": 20.0}]},
    {"kind": "on_off", "on_per_s": 20.0, "off_per_s": 1.0, "on_mean_s": 30.0, "off_mean_s": 300.0},
    {"kind": "ramp", "from_per_s": 0.0, "to_per_s": 6.0},
    {"kind": "sum", "parts": [{"kind": "constant", "rate_per_s": 1.0}, {"kind": "poisson", "rate_per_s": 2.0}]},
]


@pytest.mark.parametrize("kind", EVERY_KIND, ids=lambda kind: kind["kind"])
def test_sorted_within_the_duration_and_fixed_by_the_seed(kind: dict[str, Any]) -> None:
    first, again, other = times(3, **kind), times(3, **kind), times(4, **kind)
    assert first.dtype == np.int64
    assert (np.diff(first) >= 0).all()
    assert first[0] >= 0
    assert first[-1] < 100 * NS_PER_S
    assert first.tobytes() == again.tobytes()
    assert kind["kind"] == "constant" or first.tobytes() != other.tobytes()


def test_constant_is_constant() -> None:
    t = times(kind="constant", rate_per_s=3.0)
    assert len(t) == 300
    assert t[0] == 0
    assert set(np.diff(t).tolist()) <= {333_333_333, 333_333_334, 333_333_333 + 1}


def test_poisson_counts_and_gaps() -> None:
    runs = [times(seed, kind="poisson", rate_per_s=3.0) for seed in SEEDS]
    expect_mean([len(t) for t in runs], 300, math.sqrt(300))
    # The count's own variance is part of the process: nothing may be rescaled to hit a total.
    assert np.var([len(t) for t in runs]) == pytest.approx(300, rel=0.75)
    expect_mean([gap_cv(t) for t in runs], 1.0, 1 / math.sqrt(300))


def test_poisson_gaps_are_independent() -> None:
    gaps = np.diff(times(1, duration_s=50_000, kind="poisson", rate_per_s=3.0)).astype(float)
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 6 / math.sqrt(len(gaps))


@pytest.mark.parametrize("cv", [0.3, 1.0, 4.0])
def test_gamma_keeps_rate_and_cv(cv: float) -> None:
    runs = [times(seed, duration_s=10_000, kind="gamma", rate_per_s=3.0, gap_cv=cv) for seed in range(12)]
    expect_mean([len(t) for t in runs], 3000, cv * math.sqrt(3000) + 1)
    assert np.mean([gap_cv(t) for t in runs]) == pytest.approx(cv, rel=0.12)


def test_bursts_are_where_and_as_high_as_said() -> None:
    windows = [
        {"start_s": 100.0, "end_s": 200.0, "added_per_s": 20.0},
        {"start_s": 150.0, "end_s": 200.0, "added_per_s": 9.0},
    ]
    runs = [times(seed, kind="bursts", rate_per_s=1.0, windows=windows) / NS_PER_S for seed in SEEDS]
    for low, high, rate in ((0, 10, 1), (10, 15, 21), (15, 20, 30), (20, 100, 1)):
        expected = rate * (high - low)
        counts = [int(((t >= low) & (t < high)).sum()) for t in runs]
        expect_mean([float(c) for c in counts], expected, math.sqrt(expected))


def test_no_base_rate_means_silence_outside_the_bursts() -> None:
    t = times(kind="bursts", rate_per_s=0.0, windows=[{"start_s": 100.0, "end_s": 200.0, "added_per_s": 20.0}])
    assert len(t)
    assert t[0] >= 10 * NS_PER_S
    assert t[-1] < 20 * NS_PER_S


def test_on_off_mean_and_burstiness() -> None:
    kind = EVERY_KIND[4]
    runs = [times(seed, duration_s=30_000, **kind) for seed in range(12)]
    # On for 30 of 330 s on average: (20·30 + 1·300)/330 per clock second.
    assert np.mean([len(t) for t in runs]) / 3000 == pytest.approx(900 / 330, rel=0.2)
    assert min(gap_cv(t) for t in runs) > 1.5


def test_ramp_rises() -> None:
    kind = {"kind": "ramp", "from_per_s": 0.0, "to_per_s": 6.0, "start_s": 200.0, "end_s": 600.0}
    runs = [times(seed, **kind) / NS_PER_S for seed in SEEDS]
    for low, high, expected in ((0, 20, 0), (20, 40, 30), (40, 60, 90), (60, 100, 240)):
        counts = [float(((t >= low) & (t < high)).sum()) for t in runs]
        expect_mean(counts, expected, math.sqrt(expected) + 1e-9)


def test_parts_of_a_sum_draw_from_streams_of_their_own() -> None:
    part = {"kind": "poisson", "rate_per_s": 2.0}
    both = times(kind="sum", parts=[part, part])
    assert len(set(both.tolist())) == len(both)
    expect_mean([len(times(s, kind="sum", parts=[part, part])) for s in SEEDS], 400, math.sqrt(400))


def test_time_scale_shortens_durations_and_leaves_rates() -> None:
    windows = [{"start_s": 300.0, "end_s": 600.0, "added_per_s": 50.0}]
    t = times(duration_s=900, time_scale=30, kind="bursts", rate_per_s=0.0, windows=windows) / NS_PER_S
    assert t.min() >= 10
    assert t.max() < 20
    assert len(t) == pytest.approx(500, abs=6 * math.sqrt(500))


@pytest.mark.parametrize(
    "kind, steps_s",
    [
        (EVERY_KIND[0], [0]),
        (EVERY_KIND[3], [0, 10]),
        ({"kind": "ramp", "from_per_s": 1.0, "to_per_s": 2.0, "start_s": 50.0}, [0, 5]),
        ({"kind": "ramp", "from_per_s": 2.0, "to_per_s": 1.0, "start_s": 50.0}, [0]),
        ({"kind": "sum", "parts": [EVERY_KIND[3], EVERY_KIND[0]]}, [0, 10]),
    ],
)
def test_load_steps(kind: dict[str, Any], steps_s: list[int]) -> None:
    assert planned_rises_ns(read(**kind), Span(1000, 10, 1), Traces(Path())) == tuple(s * NS_PER_S for s in steps_s)


def test_load_steps_of_on_off_are_where_the_rate_rises() -> None:
    kind = {"kind": "on_off", "on_per_s": 50.0, "off_per_s": 0.0, "on_mean_s": 30.0, "off_mean_s": 300.0}
    steps, t = planned_rises_ns(read(**kind), Span(5000, 10, 2), Traces(Path())), times(2, duration_s=5000, **kind)
    assert len(steps) > 3
    for step in steps[1:]:
        assert not ((t > step - NS_PER_S // 10) & (t < step)).any()


def test_peak_is_that_of_any_window() -> None:
    half = NS_PER_S // 2
    t = np.array([0, half + 1, half + 2, half + 3, NS_PER_S + half, NS_PER_S + half + 1], dtype=np.int64)
    assert peak_per_s(t) == 4
    assert peak_per_s(np.array([0, NS_PER_S], dtype=np.int64)) == 1
    assert peak_per_s(np.array([], dtype=np.int64)) == 0


def test_a_slip_in_a_rate_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals_module, "ROWS_MAX", 100)
    with pytest.raises(BadInput, match="more than 100 requests"):
        times(kind="poisson", rate_per_s=9000.0)
