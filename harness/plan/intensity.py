"""A rate that changes over time, as straight pieces, and Poisson arrivals under it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from harness.plan.chance import Chance
from harness.plan.exact import total


@dataclass(frozen=True, slots=True)
class Piece:
    """From ``start_s`` to ``end_s`` (clock seconds) the rate goes straight from ``start_per_s`` to ``end_per_s``."""

    start_s: float
    end_s: float
    start_per_s: float
    end_per_s: float

    @property
    def expected(self) -> float:
        """How many arrivals fall into it on average."""
        return (self.start_per_s + self.end_per_s) / 2.0 * (self.end_s - self.start_s)

    def when(self, expected: float) -> float:
        """The second by which ``expected`` arrivals have come on average, counted from the piece's start."""
        slope = (self.end_per_s - self.start_per_s) / (self.end_s - self.start_s)
        # The root of rate·t + slope·t²/2 = expected in the form that stays exact for a flat piece.
        root = math.sqrt(max(0.0, self.start_per_s * self.start_per_s + 2.0 * slope * expected))
        elapsed = 2.0 * expected / (self.start_per_s + root)
        return min(self.end_s, self.start_s + elapsed)


def poisson(pieces: list[Piece], chance: Chance) -> Iterator[float]:
    """Arrival times (clock seconds) by time change: unit exponential gaps through the inverse of the expected count."""
    gap = chance.exponential()
    for piece in pieces:
        done = 0.0
        while done + gap < piece.expected:
            done += gap
            yield piece.when(done)
            gap = chance.exponential()
        # An exponential gap has no memory, but the rest is carried over all the same: no number is drawn in vain.
        gap -= piece.expected - done


def steps(duration_s: float, base_per_s: float, windows: list[tuple[float, float, float]]) -> list[Piece]:
    """Flat pieces from a base rate and windows (start_s, end_s, added_per_s), which may overlap."""
    edges = sorted({0.0, duration_s, *(s for s, _, _ in windows), *(e for _, e, _ in windows)})
    edges = [edge for edge in edges if edge <= duration_s]
    pieces = []
    for start, end in pairwise(edges):
        rate = base_per_s + total(added for s, e, added in windows if s <= start and end <= e)
        pieces.append(Piece(start, end, rate, rate))
    return pieces
