"""When each request of a benchmark is sent: the same moments for every client."""

from __future__ import annotations

from random import Random


def arrivals_s(rate_per_s: float, seconds: float, *, together: bool = False) -> list[float]:
    """One in each ``1 / rate`` of a second, at a random moment of it, from a fixed seed.

    ``together`` sends at the beginning of each instead. Where the gap between two tokens is a multiple of that, all
    streams tick at the same moments, as those of one model server do: whole bursts, and silence between them.
    """
    rng = Random(1)
    return [(i + (0.0 if together else rng.random())) / rate_per_s for i in range(round(rate_per_s * seconds))]
