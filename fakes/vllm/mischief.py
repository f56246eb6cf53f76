"""What a model server does wrong on purpose, by the planted bugs of its world."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from random import Random

from fakes.config import PlantedBug
from fakes.vllm.presets import LatencyProfile
from harness.kube.port import Json

SLOW_STEP_S = 0.075
LATE_S = 6.0
FAILING_SHARE = 0.15
CRASH_AT = 6
"""Requests in flight at which a server runs out of memory."""


@dataclass(frozen=True, slots=True)
class Mischief:
    """Nothing, unless it is said. Times are clock seconds, as tokens are."""

    aborts: bool = False
    """Drops what it is answering at SIGTERM, whatever its flags say."""
    hangs: bool = False
    """The same, and its clients hear nothing of it."""
    step_s: float = 0.0
    late_s: float = 0.0
    failing_share: float = 0.0
    crash_at: int | None = None
    rng: Random | None = None

    @classmethod
    def of(cls, bugs: Collection[PlantedBug], pod: Json, rng: Random) -> Mischief:
        """``rng`` is drawn from only where a bug needs chance, so that a world without bugs has its own draws."""
        crashes = PlantedBug.SERVER_CRASHES_UNDER_LOAD in bugs and not _restarted(pod)
        return cls(
            aborts=PlantedBug.SERVER_ABORTS_ON_SIGTERM in bugs,
            hangs=PlantedBug.SERVER_HANGS_ON_SIGTERM in bugs,
            step_s=SLOW_STEP_S if PlantedBug.SERVER_DECODES_SLOWLY in bugs else 0.0,
            late_s=LATE_S if PlantedBug.SERVER_ANSWERS_LATE in bugs else 0.0,
            failing_share=FAILING_SHARE if PlantedBug.SERVER_FAILS_SOME_REQUESTS in bugs else 0.0,
            crash_at=CRASH_AT if crashes else None,
            rng=rng,
        )

    def slowed(self, profile: LatencyProfile) -> LatencyProfile:
        return replace(profile, floor_s=max(profile.floor_s, self.step_s))

    def fails(self) -> bool:
        return self.failing_share > 0 and self.rng is not None and self.rng.random() < self.failing_share


NONE = Mischief()


def _restarted(pod: Json) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(int(status.get("restartCount") or 0) > 0 for status in statuses)
