"""What the metrics path does wrong on purpose: values that are old, missing, or 0 where nothing is known."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection

from fakes.config import PlantedBug
from fakes.timing import Timing

WAITING = "waiting"
STALE_BY_S = 75
HOLE_AFTER_S = 60
"""Scenario seconds, like the others here: a hole begins this long after requests were first read to wait."""
HOLE_S = 400


class MetricsMischief:
    """The store breaks under load, as stores do: what happens is counted from the first value above 0 of a metric that
    counts waiting requests."""

    def __init__(self, bugs: Collection[PlantedBug], timing: Timing) -> None:
        self._stale = PlantedBug.METRICS_STALE in bugs
        self._hole = PlantedBug.METRICS_HOLE in bugs
        self._as_zero = PlantedBug.METRICS_HOLE_AS_ZERO in bugs
        self._timing = timing
        self._loaded_s: float | None = None
        self._past: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)

    def value(self, pod: str, metric: str, value: float | None) -> float | None:
        if value is None or not (self._stale or self._hole or self._as_zero):
            return value
        now_s = asyncio.get_running_loop().time()
        if self._loaded_s is None and WAITING in metric and value > 0:
            self._loaded_s = now_s
        if self._stale:
            return self._of_the_past((pod, metric), value, now_s)
        if self._loaded_s is None:
            return value
        since_s = (now_s - self._loaded_s) * self._timing.time_scale
        if self._as_zero:
            return 0.0 if since_s < HOLE_S else value
        return None if HOLE_AFTER_S <= since_s < HOLE_AFTER_S + HOLE_S else value

    def _of_the_past(self, key: tuple[str, str], value: float, now_s: float) -> float:
        seen = self._past[key]
        seen.append((now_s, value))
        old = [v for t_s, v in seen if t_s <= now_s - self._timing.clock_s(STALE_BY_S)]
        return old[-1] if old else seen[0][1]
