"""The one clock of a run: nanoseconds of the system-wide monotonic clock since the run's start.

CLOCK_MONOTONIC is shared by all processes of a machine, so a child that is handed the start
(``GPU_HARNESS_START_NS``) stamps in the same time as the supervisor, whatever NTP does meanwhile.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

START_NS_ENV = "GPU_HARNESS_START_NS"
NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000


def monotonic_ns() -> int:
    """Raw CLOCK_MONOTONIC; only to be handed over or subtracted, never written into a history."""
    return time.monotonic_ns()


@dataclass(frozen=True, slots=True)
class RunClock:
    """Stamps history time (``t_ns``, since the run's start) and turns scenario seconds into clock time."""

    start_ns: int
    time_scale: float = 1.0

    def now_ns(self) -> int:
        return time.monotonic_ns() - self.start_ns

    def clock_s(self, scenario_s: float) -> float:
        """Clock seconds for a duration that was written in scenario seconds."""
        return scenario_s / self.time_scale

    def scenario_s(self, clock_ns: int) -> float:
        """Scenario seconds for a span of history nanoseconds."""
        return clock_ns / NS_PER_S * self.time_scale
