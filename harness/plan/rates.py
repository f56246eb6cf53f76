"""Rates that change over time, as straight pieces of the clock: what the kinds of Poisson arrivals are made of."""

from __future__ import annotations

from collections.abc import Callable

from harness.errors import BadInput
from harness.plan.chance import Chance
from harness.plan.exact import cosine, power
from harness.plan.intensity import Piece
from harness.spec.arrivals import (
    DiurnalArrivals,
    FlashCrowdArrivals,
    OnOffArrivals,
    PulseArrivals,
    RampArrivals,
    StepArrivals,
)

_PIECES_PER_PERIOD = 96
"""A quarter of an hour of a day each; the rate between them is off by less than 0.06 % of the swing."""
_PIECES_PER_HALF_LIFE = 8
_PIECES_MAX = 1_000_000
_HALF_LIVES = 12
"""After these a 4000th of the crowd is left, and the rate goes straight to the base."""


def on_off(arrivals: OnOffArrivals, clock_s: float, time_scale: float, chance: Chance) -> list[Piece]:
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


def pulses(arrivals: PulseArrivals, clock_s: float, time_scale: float) -> list[Piece]:
    start_s, on_s = arrivals.start_s / time_scale, arrivals.on_s / time_scale
    period_s = arrivals.period_s / time_scale
    _check_fineness((clock_s - start_s) / period_s, period_s, clock_s)
    pieces = [Piece(0.0, min(start_s, clock_s), arrivals.off_per_s, arrivals.off_per_s)]
    number = 0
    while (begins_s := start_s + number * period_s) < clock_s:
        number += 1
        ends_s, next_s = min(clock_s, begins_s + on_s), min(clock_s, start_s + number * period_s)
        pieces.append(Piece(begins_s, ends_s, arrivals.on_per_s, arrivals.on_per_s))
        pieces.append(Piece(ends_s, next_s, arrivals.off_per_s, arrivals.off_per_s))
    return [piece for piece in pieces if piece.end_s > piece.start_s]


def ramp(arrivals: RampArrivals, clock_s: float, time_scale: float) -> list[Piece]:
    start_s = arrivals.start_s / time_scale
    end_s = clock_s if arrivals.end_s is None else arrivals.end_s / time_scale
    pieces = [
        Piece(0.0, start_s, arrivals.from_per_s, arrivals.from_per_s),
        Piece(start_s, end_s, arrivals.from_per_s, arrivals.to_per_s),
        Piece(end_s, clock_s, arrivals.to_per_s, arrivals.to_per_s),
    ]
    return [piece for piece in pieces if piece.end_s > piece.start_s]


def step(arrivals: StepArrivals, clock_s: float, time_scale: float) -> list[Piece]:
    starts = [level.start_s / time_scale for level in arrivals.levels]
    ends = [*starts[1:], clock_s]
    pieces = [
        Piece(start, min(end, clock_s), level.rate_per_s, level.rate_per_s)
        for start, end, level in zip(starts, ends, arrivals.levels, strict=True)
    ]
    return [piece for piece in pieces if piece.end_s > piece.start_s]


def diurnal(arrivals: DiurnalArrivals, clock_s: float, time_scale: float) -> list[Piece]:
    period_s = arrivals.period_s / time_scale
    phase = arrivals.peak_s / arrivals.period_s
    mean, swing = (arrivals.high_per_s + arrivals.low_per_s) / 2.0, (arrivals.high_per_s - arrivals.low_per_s) / 2.0

    def rate(turns: float) -> float:
        return max(0.0, mean + swing * cosine(turns - phase))

    return _through(lambda t: rate(t / period_s), period_s / _PIECES_PER_PERIOD, 0.0, clock_s)


def flash_crowd(arrivals: FlashCrowdArrivals, clock_s: float, time_scale: float) -> list[Piece]:
    base, peak = arrivals.rate_per_s, arrivals.peak_per_s
    start_s = arrivals.start_s / time_scale
    top_s = start_s + arrivals.rise_s / time_scale
    falls_s = top_s + arrivals.hold_s / time_scale
    half_life_s = arrivals.half_life_s / time_scale
    gone_s = falls_s + _HALF_LIVES * half_life_s

    def rate(t: float) -> float:
        return base + (peak - base) * power(0.5, (t - falls_s) / half_life_s)

    pieces = [
        Piece(0.0, start_s, base, base),
        Piece(start_s, top_s, base, peak),
        Piece(top_s, falls_s, peak, peak),
        *_through(rate, half_life_s / _PIECES_PER_HALF_LIFE, falls_s, min(gone_s, clock_s)),
        Piece(gone_s, clock_s, base, base),
    ]
    return [piece for piece in pieces if piece.end_s > piece.start_s]


def _through(rate: Callable[[float], float], step_s: float, start_s: float, end_s: float) -> list[Piece]:
    """Straight pieces of ``step_s`` through the curve, the last one cut off at ``end_s``."""
    _check_fineness((end_s - start_s) / step_s, step_s, end_s - start_s)
    pieces: list[Piece] = []
    index, t, now = 0, start_s, rate(start_s)
    while t < end_s:
        index += 1
        following = min(end_s, start_s + index * step_s)
        after = rate(following)
        pieces.append(Piece(t, following, now, after))
        t, now = following, after
    return pieces


def _check_fineness(pieces: float, step_s: float, lasts_s: float) -> None:
    if pieces > _PIECES_MAX:
        raise BadInput(
            f"the rate changes each {step_s:g} s of the clock, which is too fine for {lasts_s:g} s",
            hint="lengthen period_s or half_life_s, or shorten duration_s",
        )
