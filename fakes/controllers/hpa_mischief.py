"""What an autoscaler makes of the size that it wants, under planted bugs."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from fakes.config import PlantedBug
from fakes.timing import Timing

HESITATION_S = 150
"""For how long it sleeps on a need, scenario seconds."""


class HpaMischief:
    """Nothing, unless a bug is planted."""

    def __init__(self, bugs: Collection[PlantedBug], timing: Timing) -> None:
        self._bugs = frozenset(bugs)
        self._hesitation_s = timing.clock_s(HESITATION_S)
        self._slept: tuple[float, int] | None = None
        self._turns = 0

    def misled(self, wanted: int, current: int, bounds: tuple[int, int]) -> int:
        if PlantedBug.HPA_BLIND in self._bugs or (PlantedBug.HPA_NEVER_SCALES_IN in self._bugs and wanted < current):
            return current
        if PlantedBug.HPA_HESITATES in self._bugs and (wanted > current or self._slept):
            return self._hesitated(wanted, current)
        if PlantedBug.HPA_THRASHES in self._bugs and current > bounds[0]:
            self._turns += 1
            return max(bounds[0], min(bounds[1], current + (1 if self._turns % 2 == 0 else -1)))
        return wanted

    def _hesitated(self, wanted: int, current: int) -> int:
        now_s = asyncio.get_running_loop().time()
        since_s, most = self._slept or (now_s, wanted)
        most = max(most, wanted)
        if now_s - since_s < self._hesitation_s:
            self._slept = (since_s, most)
            return current
        self._slept = None
        return max(current, most)
