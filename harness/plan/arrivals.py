"""When requests arrive: each kind of arrival process as times in whole nanoseconds of the clock, sorted.

Rates are requests per clock second; durations of the profile are scenario seconds, divided by ``time_scale``. Nothing
is rescaled to hit a total: a count is as random as its process says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

from harness.clock import NS_PER_S
from harness.plan.chance import Chance
from harness.plan.exact import total
from harness.plan.intensity import Piece, poisson, steps
from harness.plan.rates import diurnal, flash_crowd, on_off, pulses, ramp, step
from harness.plan.replay import Traces
from harness.plan.schedule import rises_ns
from harness.plan.tokens import between
from harness.plan.trace_row import ROWS_MAX, too_many
from harness.spec.arrivals import (
    Arrivals,
    BurstArrivals,
    ConstantArrivals,
    DiurnalArrivals,
    FlashCrowdArrivals,
    GammaArrivals,
    OnOffArrivals,
    PoissonArrivals,
    PulseArrivals,
    RampArrivals,
    RenewalArrivals,
    SequenceArrivals,
    StepArrivals,
    SumArrivals,
    TraceArrivals,
)

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Span:
    """How long (scenario seconds), how fast, and with which chance; ``stream`` keeps the parts of a whole apart."""

    duration_s: float
    time_scale: float
    seed: int
    stream: str = ""

    @property
    def clock_s(self) -> float:
        return self.duration_s / self.time_scale

    @property
    def clock_ns(self) -> int:
        return round(self.clock_s * NS_PER_S)

    def chance(self) -> Chance:
        return Chance(self.seed, f"arrivals{self.stream}")

    def part(self, index: int, duration_s: float | None = None) -> Span:
        lasts_s = self.duration_s if duration_s is None else duration_s
        return Span(lasts_s, self.time_scale, self.seed, f"{self.stream}.{index}")


@dataclass(frozen=True, slots=True)
class Arrived:
    """Sorted times; ``row`` is the row of ``Traces`` that arrived, -1 where none did."""

    t_ns: Times
    row: Times


def arrive(arrivals: Arrivals, span: Span, traces: Traces) -> Arrived:
    """All arrivals in [0, duration_s) scenario seconds."""
    match arrivals:
        case SumArrivals():
            arrived = _together([arrive(a, span.part(i), traces) for i, a in enumerate(arrivals.parts)])
        case SequenceArrivals():
            parts = []
            for index, start_s, length_s, part in arrivals.spans(span.duration_s):
                came = arrive(part, span.part(index, length_s), traces)
                start_ns = round(start_s / span.time_scale * NS_PER_S)
                parts.append(Arrived(came.t_ns + start_ns, came.row))
            arrived = _together(parts)
        case TraceArrivals():
            arrived = Arrived(*traces.arrive(arrivals, span.clock_ns, span.seed, span.stream))
        case _:
            seconds = _seconds(arrivals, span.clock_s, span.time_scale, span.chance())
            times = np.fromiter((round(t * NS_PER_S) for t in islice(seconds, ROWS_MAX + 1)), dtype=np.int64)
            arrived = Arrived(times, np.full(len(times), -1, dtype=np.int64))
    if len(arrived.t_ns) > ROWS_MAX:
        raise too_many("the load profile", ROWS_MAX)
    within = arrived.t_ns < span.clock_ns
    return Arrived(arrived.t_ns[within], arrived.row[within])


def _together(parts: Sequence[Arrived]) -> Arrived:
    times = np.concatenate([part.t_ns for part in parts])
    order = np.argsort(times, kind="stable")
    return Arrived(times[order], np.concatenate([part.row for part in parts])[order])


def planned_rises_ns(arrivals: Arrivals, span: Span, traces: Traces) -> tuple[int, ...]:
    """When the load is planned to rise: its start, and each burst, on-state, ramp, step, crowd, or higher part of a
    sequence. Where chance or a trace alone makes the bursts, they are seen in the arrivals."""
    match arrivals:
        case SumArrivals():
            parts = [planned_rises_ns(a, span.part(i), traces) for i, a in enumerate(arrivals.parts)]
            return tuple(sorted({t for part in parts for t in part}))
        case SequenceArrivals():
            return _rises_of_sequence(arrivals, span, traces)
        case TraceArrivals():
            return rises_ns(arrive(arrivals, span, traces).t_ns, span.clock_s)
        case _:
            starts_s = [0.0, *_rises_s(arrivals, span)]
            return tuple(sorted({round(s * NS_PER_S) for s in starts_s}))


def _rises_of_sequence(arrivals: SequenceArrivals, span: Span, traces: Traces) -> tuple[int, ...]:
    rises, before_per_s = {0}, 0.0
    for index, start_s, length_s, part in arrivals.spans(span.duration_s):
        start_ns = round(start_s / span.time_scale * NS_PER_S)
        own = span.part(index, length_s)
        first_per_s, last_per_s = _edge_rates(part, own)
        inner = planned_rises_ns(part, own, traces)
        rises.update(start_ns + t for t in inner if t or first_per_s > before_per_s)
        before_per_s = last_per_s
    return tuple(sorted(rises))


def _edge_rates(arrivals: Arrivals, span: Span) -> tuple[float, float]:
    """The planned rate at the start and at the end; a trace's is taken as 0, so that what follows it counts as a
    rise."""
    match arrivals:
        case ConstantArrivals() | PoissonArrivals() | GammaArrivals() | RenewalArrivals():
            return arrivals.rate_per_s, arrivals.rate_per_s
        case OnOffArrivals():
            return arrivals.off_per_s, arrivals.off_per_s
        case SumArrivals():
            edges = [_edge_rates(a, span.part(i)) for i, a in enumerate(arrivals.parts)]
            return total(first for first, _ in edges), total(last for _, last in edges)
        case SequenceArrivals():
            parts = [_edge_rates(a, span.part(i, s)) for i, _, s, a in arrivals.spans(span.duration_s)]
            return parts[0][0], parts[-1][1]
        case TraceArrivals():
            return float("inf"), 0.0
        case _:
            pieces = _pieces(arrivals, span.clock_s, span.time_scale)
            return pieces[0].start_per_s, pieces[-1].end_per_s


def _rises_s(arrivals: Arrivals, span: Span) -> list[float]:
    """Clock seconds, without the load's start."""
    match arrivals:
        case BurstArrivals():
            return [window.start_s / span.time_scale for window in arrivals.windows]
        case OnOffArrivals():
            return [piece.start_s for piece in on_off(arrivals, span.clock_s, span.time_scale, span.chance())[1::2]]
        case PulseArrivals():
            return [p.start_s for p in pulses(arrivals, span.clock_s, span.time_scale) if _is_pulse(p, arrivals)]
        case RampArrivals() if arrivals.to_per_s > arrivals.from_per_s:
            return [arrivals.start_s / span.time_scale]
        case StepArrivals():
            up = [b for a, b in pairwise(arrivals.levels) if b.rate_per_s > a.rate_per_s]
            return [level.start_s / span.time_scale for level in up]
        case FlashCrowdArrivals():
            return [arrivals.start_s / span.time_scale]
        case DiurnalArrivals():
            # The climb begins at each low, half a period before a peak.
            first = (arrivals.peak_s / arrivals.period_s + 0.5) % 1.0
            lows = [(first + n) * arrivals.period_s for n in range(int(span.duration_s / arrivals.period_s) + 1)]
            return [low / span.time_scale for low in lows if low < span.duration_s]
        case _:
            return []


def _is_pulse(piece: Piece, arrivals: PulseArrivals) -> bool:
    return arrivals.on_per_s > arrivals.off_per_s and piece.start_per_s == arrivals.on_per_s


def seen_in_arrivals(arrivals: Arrivals) -> bool:
    """Whether chance alone makes the bursts, so that rises can only be read off the arrivals."""
    return isinstance(arrivals, GammaArrivals | RenewalArrivals)


def _seconds(arrivals: Arrivals, clock_s: float, time_scale: float, chance: Chance) -> Iterator[float]:
    match arrivals:
        case ConstantArrivals():
            return _constant(arrivals.rate_per_s, clock_s)
        case GammaArrivals():
            return _gamma(arrivals.rate_per_s, arrivals.gap_cv, clock_s, chance)
        case RenewalArrivals():
            return _renewal(arrivals, clock_s, chance)
        case OnOffArrivals():
            return poisson(on_off(arrivals, clock_s, time_scale, chance), chance)
        case _:
            return poisson(_pieces(arrivals, clock_s, time_scale), chance)


def _pieces(arrivals: Arrivals, clock_s: float, time_scale: float) -> list[Piece]:
    match arrivals:
        case PoissonArrivals():
            return steps(clock_s, arrivals.rate_per_s, [])
        case BurstArrivals():
            windows = [(w.start_s / time_scale, w.end_s / time_scale, w.added_per_s) for w in arrivals.windows]
            return steps(clock_s, arrivals.rate_per_s, windows)
        case PulseArrivals():
            return pulses(arrivals, clock_s, time_scale)
        case RampArrivals():
            return ramp(arrivals, clock_s, time_scale)
        case StepArrivals():
            return step(arrivals, clock_s, time_scale)
        case DiurnalArrivals():
            return diurnal(arrivals, clock_s, time_scale)
        case FlashCrowdArrivals():
            return flash_crowd(arrivals, clock_s, time_scale)
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


def _renewal(arrivals: RenewalArrivals, clock_s: float, chance: Chance) -> Iterator[float]:
    mean = total((q1 - q0) * (low + high) / 2.0 for (q0, low), (q1, high) in pairwise(arrivals.gaps))
    scale_s = 1.0 / (arrivals.rate_per_s * mean)
    t = between(arrivals.gaps, chance.uniform()) * scale_s
    while t < clock_s:
        yield t
        t += between(arrivals.gaps, chance.uniform()) * scale_s
