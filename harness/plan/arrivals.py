"""When requests arrive: each kind of arrival process as times in whole nanoseconds of the clock, sorted.

Rates are requests per clock second; durations of the profile are scenario seconds, divided by ``time_scale``. Nothing
is rescaled to hit a total: a count is as random as its process says.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from harness.clock import NS_PER_S
from harness.errors import BadInput
from harness.plan.chance import Chance
from harness.plan.intensity import Piece, poisson, steps
from harness.spec.loadprofile import (
    Arrivals,
    BurstArrivals,
    ConstantArrivals,
    GammaArrivals,
    OnOffArrivals,
    PoissonArrivals,
    RampArrivals,
    SumArrivals,
)

Times = NDArray[np.int64]
ROWS_MAX = 2_000_000
"""No run on one machine sends more; beyond it a slip in a rate would only fill the memory."""


def arrival_times_ns(arrivals: Arrivals, duration_s: float, time_scale: float, seed: int, stream: str = "") -> Times:
    """All arrivals in [0, duration_s) scenario seconds. ``stream`` keeps the parts of a sum apart."""
    if isinstance(arrivals, SumArrivals):
        parts = [
            arrival_times_ns(part, duration_s, time_scale, seed, f"{stream}.{index}")
            for index, part in enumerate(arrivals.parts)
        ]
        return np.sort(np.concatenate(parts), kind="stable")
    clock_s = duration_s / time_scale
    chance = Chance(seed, f"arrivals{stream}")
    seconds = _seconds(arrivals, clock_s, time_scale, chance)
    limit_ns = round(clock_s * NS_PER_S)
    times = np.fromiter((round(t * NS_PER_S) for t in islice(seconds, ROWS_MAX + 1)), dtype=np.int64)
    if len(times) > ROWS_MAX:
        hint = "lower the rate or duration_s; one run is meant for minutes"
        raise BadInput(f"the load profile makes more than {ROWS_MAX:,} requests", hint=hint)
    return times[times < limit_ns]


def load_steps_ns(
    arrivals: Arrivals, duration_s: float, time_scale: float, seed: int, stream: str = ""
) -> tuple[int, ...]:
    """When the load is planned to rise: its start, and each burst, on-state or ramp. Gamma gaps have no such plan."""
    if isinstance(arrivals, SumArrivals):
        steps = [
            load_steps_ns(part, duration_s, time_scale, seed, f"{stream}.{index}")
            for index, part in enumerate(arrivals.parts)
        ]
        return tuple(sorted({t for part in steps for t in part}))
    starts_s = [0.0]
    match arrivals:
        case BurstArrivals():
            starts_s += [window.start_s / time_scale for window in arrivals.windows]
        case OnOffArrivals():
            pieces = _on_off(arrivals, duration_s / time_scale, time_scale, Chance(seed, f"arrivals{stream}"))
            starts_s += [piece.start_s for piece in pieces[1::2]]
        case RampArrivals() if arrivals.to_per_s > arrivals.from_per_s:
            starts_s.append(arrivals.start_s / time_scale)
    return tuple(sorted({round(s * NS_PER_S) for s in starts_s}))


def _seconds(arrivals: Arrivals, clock_s: float, time_scale: float, chance: Chance) -> Iterator[float]:
    match arrivals:
        case ConstantArrivals():
            return _constant(arrivals.rate_per_s, clock_s)
        case PoissonArrivals():
            return poisson(steps(clock_s, arrivals.rate_per_s, []), chance)
        case GammaArrivals():
            return _gamma(arrivals.rate_per_s, arrivals.gap_cv, clock_s, chance)
        case BurstArrivals():
            windows = [(w.start_s / time_scale, w.end_s / time_scale, w.added_per_s) for w in arrivals.windows]
            return poisson(steps(clock_s, arrivals.rate_per_s, windows), chance)
        case OnOffArrivals():
            return poisson(_on_off(arrivals, clock_s, time_scale, chance), chance)
        case RampArrivals():
            return poisson(_ramp(arrivals, clock_s, time_scale), chance)
        case _:
            raise TypeError(f"no single arrival process: {type(arrivals).__name__}")


def _constant(rate_per_s: float, clock_s: float) -> Iterator[float]:
    index = 0
    while (t := index / rate_per_s) < clock_s:
        yield t
        index += 1


def _gamma(rate_per_s: float, gap_cv: float, clock_s: float, chance: Chance) -> Iterator[float]:
    shape = 1.0 / (gap_cv * gap_cv)
    scale_s = 1.0 / (rate_per_s * shape)
    t = chance.gamma(shape) * scale_s
    while t < clock_s:
        yield t
        t += chance.gamma(shape) * scale_s


def _on_off(arrivals: OnOffArrivals, clock_s: float, time_scale: float, chance: Chance) -> list[Piece]:
    """The states are drawn first, from the same stream; arrivals follow."""
    pieces: list[Piece] = []
    t, on = 0.0, False
    while t < clock_s:
        mean_s = (arrivals.on_mean_s if on else arrivals.off_mean_s) / time_scale
        end = min(clock_s, t + chance.exponential() * mean_s)
        rate = arrivals.on_per_s if on else arrivals.off_per_s
        if end > t:
            pieces.append(Piece(t, end, rate, rate))
        t, on = end, not on
    return pieces


def _ramp(arrivals: RampArrivals, clock_s: float, time_scale: float) -> list[Piece]:
    start_s = arrivals.start_s / time_scale
    end_s = clock_s if arrivals.end_s is None else arrivals.end_s / time_scale
    pieces = [
        Piece(0.0, start_s, arrivals.from_per_s, arrivals.from_per_s),
        Piece(start_s, end_s, arrivals.from_per_s, arrivals.to_per_s),
        Piece(end_s, clock_s, arrivals.to_per_s, arrivals.to_per_s),
    ]
    return [piece for piece in pieces if piece.end_s > piece.start_s]
