"""What making a schedule showed that its columns do not: where a bound of the profile, and not its chance, decided."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median_low

import numpy as np
from numpy.typing import NDArray

from harness.clock import NS_PER_S
from harness.spec.tokens import HistogramTokens, Tokens


@dataclass(frozen=True, slots=True)
class AtBound:
    """``ratio`` of the planned requests have just ``tokens``, the bound ``key``; of prompts only their new tokens
    count."""

    key: str
    tokens: int
    ratio: float


@dataclass(slots=True)
class TurnsDrawn:
    """Of sessions. Where one ended before its last drawn turn, that turn was too long for the context, or too late for
    the load."""

    turns_min: int
    cut_by_context: int = 0
    cut_by_end: int = 0
    below_min_by_context: int = 0
    below_min_by_end: int = 0
    first_turns_too_long: int = 0
    """Planned all the same: they are arrivals."""
    think_ns: list[int] = field(default_factory=list, repr=False)
    """Before each planned further turn, clock nanoseconds."""

    def cut_before(self, turn: int, *, by_context: bool) -> None:
        short = turn - 1 < self.turns_min
        if by_context:
            self.cut_by_context += 1
            self.below_min_by_context += short
        else:
            self.cut_by_end += 1
            self.below_min_by_end += short

    def think_s_p50(self, time_scale: float) -> float | None:
        """Scenario seconds."""
        return round(median_low(self.think_ns) / NS_PER_S * time_scale, 3) if self.think_ns else None


@dataclass(frozen=True, slots=True)
class Drawn:
    prompt: tuple[AtBound, ...] = ()
    output: tuple[AtBound, ...] = ()
    turns: TurnsDrawn | None = None


NOTHING_DRAWN = Drawn()
"""Of a replayed trace, whose rows are as they are."""


def at_bounds(tokens: Tokens, lengths: NDArray[np.int64]) -> tuple[AtBound, ...]:
    """Bounds that at least one length has."""
    if isinstance(tokens, HistogramTokens) or not len(lengths):
        return ()
    found = []
    for key in ("max_tokens", "min_tokens"):
        bound: int | None = getattr(tokens, key, None)
        count = 0 if bound is None else int((lengths == bound).sum())
        if bound is not None and count:
            found.append(AtBound(key, bound, round(count / len(lengths), 6)))
    return tuple(found)
