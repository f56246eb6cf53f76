"""Arrivals that change over time, and those made of others; limits stand six standard errors away."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import TypeAdapter

from harness.clock import NS_PER_S
from harness.plan.arrivals import Span, arrive, planned_rises_ns
from harness.plan.replay import Traces
from harness.spec.arrivals import Arrivals

ADAPTER: TypeAdapter[Arrivals] = TypeAdapter(Arrivals)
POISSON = {"kind": "poisson", "rate_per_s": 5.0}
TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:00:{i:02}.5,{100 + i},{10 + i}\n" for i in range(20)
)


def came(
    seed: int = 1, lasts_s: float = 100, time_scale: float = 1, folder: Path = Path(), **kind: Any
) -> NDArray[np.int64]:
    traces = Traces(folder / "profile.yaml")
    return arrive(ADAPTER.validate_python(kind), Span(lasts_s, time_scale, seed), traces).t_ns


def rises_s(lasts_s: float = 100, time_scale: float = 1, folder: Path = Path(), **kind: Any) -> list[float]:
    span = Span(lasts_s, time_scale, 1)
    rises = planned_rises_ns(ADAPTER.validate_python(kind), span, Traces(folder / "profile.yaml"))
    return [t / NS_PER_S for t in rises]


def expect_rate(kind: dict[str, Any], start_s: float, end_s: float, per_s: float) -> None:
    """On average over many seeds."""
    seeds = 60
    times = np.concatenate([came(seed, **kind) for seed in range(seeds)]) / NS_PER_S
    count = int(((times >= start_s) & (times < end_s)).sum())
    expected = per_s * (end_s - start_s) * seeds
    assert abs(count - expected) <= 6 * math.sqrt(expected) + 1, (start_s, end_s, count / seeds / (end_s - start_s))


STEP = {"kind": "step", "levels": [{"start_s": 0, "rate_per_s": 2.0}, {"start_s": 40, "rate_per_s": 8.0},
                                   {"start_s": 60, "rate_per_s": 0.0}]}  # fmt: skip
DIURNAL = {"kind": "diurnal", "low_per_s": 1.0, "high_per_s": 9.0, "period_s": 100.0, "peak_s": 25.0}
CROWD = {"kind": "flash_crowd", "rate_per_s": 1.0, "peak_per_s": 17.0, "start_s": 20.0, "rise_s": 10.0, "hold_s": 10.0,
         "half_life_s": 10.0}  # fmt: skip
PULSES = {"kind": "pulses", "on_per_s": 12.0, "off_per_s": 2.0, "period_s": 40.0, "on_s": 10.0, "start_s": 5.0}


@pytest.mark.parametrize(
    "kind, start_s, end_s, per_s",
    [
        (PULSES, 0, 5, 2), (PULSES, 5, 15, 12), (PULSES, 15, 45, 2), (PULSES, 45, 55, 12), (PULSES, 85, 95, 12),
        (PULSES, 95, 100, 2),
        (STEP, 0, 40, 2), (STEP, 40, 60, 8), (STEP, 60, 100, 0),
        (DIURNAL, 0, 100, 5), (DIURNAL, 24, 26, 9), (DIURNAL, 74, 76, 1), (DIURNAL, 49, 51, 5),
        # A quarter of the swing on both sides of the peak: the mean of the cosine there is sin(π/4)/(π/4).
        (DIURNAL, 12.5, 37.5, 5 + 4 * 0.900316),
        (CROWD, 0, 20, 1), (CROWD, 20, 30, 9), (CROWD, 30, 40, 17),
        # The excess of 16 halves: over one half-life its mean is 8/ln 2.
        (CROWD, 40, 50, 1 + 8 / math.log(2)), (CROWD, 90, 100, 1 + 8 / math.log(2) / 32),
    ],
)  # fmt: skip
def test_rates_are_as_written(kind: dict[str, Any], start_s: float, end_s: float, per_s: float) -> None:
    expect_rate(kind, start_s, end_s, per_s)


def test_pulses_are_planned_rises() -> None:
    assert rises_s(**PULSES) == [0, 5, 45, 85]
    assert rises_s(lasts_s=88, **PULSES | {"off_per_s": 0.0}) == [0, 5, 45, 85]
    assert rises_s(**PULSES | {"off_per_s": 20.0}) == [0]


@pytest.mark.parametrize("kind", [STEP, DIURNAL, CROWD, PULSES])
def test_scenario_seconds_are_divided_and_rates_are_not(kind: dict[str, Any]) -> None:
    slow, fast = len(came(**kind)), len(came(time_scale=10, **kind))
    assert fast == pytest.approx(slow / 10, abs=6 * math.sqrt(slow / 10))
    assert [10 * t for t in rises_s(time_scale=10, **kind)] == rises_s(**kind)


def test_renewal_keeps_the_proportions_of_its_gaps_and_its_rate() -> None:
    kind = {"kind": "renewal", "rate_per_s": 10.0, "gaps": [[0, 1], [0.9, 1], [0.9001, 11], [1, 11]]}
    times = np.concatenate([np.diff(came(seed, lasts_s=500, **kind)) for seed in range(4)]) / NS_PER_S
    # Gaps of 1 and 11 with mean 2, stretched to a mean of 0.1 s.
    assert np.quantile(times, [0.1, 0.5, 0.89]) == pytest.approx([0.05] * 3, rel=1e-3)
    assert np.quantile(times, 0.95) == pytest.approx(0.55, rel=1e-3)
    assert times.mean() == pytest.approx(0.1, rel=0.05)


BOTH = {"kind": "sum", "parts": [POISSON, {"kind": "constant", "rate_per_s": 1.0}]}
RAMP = {"kind": "ramp", "from_per_s": 0.0, "to_per_s": 8.0, "start_s": 10.0}
SEQUENCE = {
    "kind": "sequence",
    "parts": [
        {"duration_s": 40.0, "arrivals": {"kind": "constant", "rate_per_s": 2.0}},
        {"duration_s": 20.0, "arrivals": BOTH},
        {"arrivals": RAMP},
    ],
}


class TestSequence:
    @pytest.mark.parametrize("start_s, end_s, per_s", [(0, 40, 2), (40, 60, 6), (60, 70, 0), (70, 100, 4)])
    def test_each_part_has_its_time_and_counts_from_its_own_start(
        self, start_s: float, end_s: float, per_s: float
    ) -> None:
        expect_rate(SEQUENCE, start_s, end_s, per_s)

    def test_parts_have_chances_of_their_own(self) -> None:
        parts = [{"duration_s": 50.0, "arrivals": POISSON}, {"arrivals": POISSON}]
        t = came(kind="sequence", parts=parts)
        first, second = t[t < 50 * NS_PER_S], t[t >= 50 * NS_PER_S] - 50 * NS_PER_S
        assert len(np.intersect1d(first, second)) == 0

    def test_a_sequence_within_a_sum_within_a_sequence(self) -> None:
        inner = {"kind": "sequence", "parts": [{"duration_s": 5.0, "arrivals": POISSON}, {"arrivals": POISSON}]}
        whole = {"kind": "sequence", "parts": [{"duration_s": 90.0, "arrivals": POISSON},
                                               {"arrivals": {"kind": "sum", "parts": [inner, POISSON]}}]}  # fmt: skip
        expect_rate(whole, 90, 95, 10)

    def test_rises(self) -> None:
        assert rises_s(**SEQUENCE) == [0, 40, 70]


@pytest.mark.parametrize(
    "kind, rises", [(STEP, [0, 40]), (CROWD, [0, 20]), (DIURNAL, [0, 75]), (DIURNAL | {"peak_s": 75.0}, [0, 25])]
)
def test_rises(kind: dict[str, Any], rises: list[float]) -> None:
    assert rises_s(**kind) == rises


class TestTrace:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "t.csv").write_text(TRACE)
        return tmp_path

    def test_rows_arrive_at_the_trace_s_speed(self, folder: Path) -> None:
        t = came(folder=folder, kind="trace", file="t.csv", speed=2.0, start_s=4.0, duration_s=10.0)
        assert (t / NS_PER_S).tolist() == [0.5 * i for i in range(10)]

    def test_a_loop_goes_on_to_the_end(self, folder: Path) -> None:
        t = came(folder=folder, kind="trace", file="t.csv", duration_s=20.0, loop=True)
        assert (t / NS_PER_S).tolist() == list(range(100))
        whole = came(folder=folder, kind="trace", file="t.csv", loop=True)
        assert (np.diff(whole) / NS_PER_S).tolist() == pytest.approx([1.0] * 99, abs=1e-6)

    def test_in_a_sum_rows_and_chance_are_merged(self, folder: Path) -> None:
        trace = {"kind": "trace", "file": "t.csv", "loop": True, "duration_s": 20.0}
        traces = Traces(folder / "profile.yaml")
        kind = ADAPTER.validate_python(
            {"kind": "sum", "parts": [trace, POISSON, trace | {"start_s": 5.0, "duration_s": 15.0}]}
        )
        arrived = arrive(kind, Span(15, 1, 1), traces)
        assert (np.diff(arrived.t_ns) >= 0).all()
        prompts = [traces.prompt_tokens[row] for row in arrived.row if row >= 0]
        assert sorted(prompts) == sorted([*range(100, 115), *range(105, 120)])

    def test_rises_are_seen_in_the_rows(self, folder: Path) -> None:
        assert rises_s(folder=folder, kind="trace", file="t.csv") == [0]


def test_every_kind_has_the_same_times_for_the_same_seed() -> None:
    kind = {"kind": "sum", "parts": [STEP, DIURNAL, CROWD, SEQUENCE]}
    assert (came(3, **kind) == came(3, **kind)).all()
    assert len({came(seed, **kind).tobytes() for seed in range(8)}) == 8
