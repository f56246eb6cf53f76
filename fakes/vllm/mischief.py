"""What a model server does wrong on purpose, by the planted bugs of its world."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, replace
from random import Random

from fakes.config import PlantedBug
from fakes.vllm.engine import Engine
from fakes.vllm.presets import LatencyProfile
from harness.kube.port import Json

SLOW_STEP_S = 0.075
LATE_S = 6.0
LATE = frozenset(
    {
        PlantedBug.SERVER_ANSWERS_LATE,
        PlantedBug.SERVER_CHOKES_ON_LONG_PROMPTS,
        PlantedBug.SERVER_SERVES_THE_URGENT_LATE,
    }
)
FAILING_SHARE = 0.15
STUTTER_EVERY_S = 6.0
STUTTER_S = 1.0
"""So often, and for so long, its engine stands still: the mean time per token hardly shows it."""
LONG_PROMPT = 900
URGENT_BELOW = 0
"""Requests of a lower priority number are the ones that vLLM would serve first."""
CRASH_AT = 6
"""Requests in flight at which a server runs out of memory, or its engine dies."""
STUCK_AFTER = 40
"""Requests that a server has begun when its engine stops to move."""
SILENT_AFTER = 52
"""The same for all of its process."""
BUSY_AT = 3
"""Requests in flight at which a server sends others away."""


@dataclass(frozen=True, slots=True)
class Mischief:
    """Nothing, unless it is said. Times are clock seconds, as tokens are."""

    aborts: bool = False
    """Drops what it is answering at SIGTERM, whatever its flags say."""
    hangs: bool = False
    """The same, and its clients hear nothing of it."""
    healthy_while_loading: bool = False
    """Takes connections and calls itself healthy from its start; what it is asked waits for the model."""
    step_s: float = 0.0
    stutters: bool = False
    late_s: float = 0.0
    late_from_tokens: int = 0
    """Prompts shorter than this are not late."""
    late_below: int | None = None
    """Only requests of a lower priority number are late."""
    failing_share: float = 0.0
    crash_at: int | None = None
    engine_dies_at: int | None = None
    engine_stuck_after: int | None = None
    """It makes no step any more, while /health stays 200."""
    silent_after: int | None = None
    """Connections are taken, and nothing is answered, /health included."""
    busy_at: int | None = None
    """Answers 429 from so many requests in flight on."""
    rng: Random | None = None

    @classmethod
    def of(cls, bugs: Collection[PlantedBug], pod: Json, rng: Random) -> Mischief:
        """``rng`` is drawn from only where a bug needs chance, so that a world without bugs has its own draws."""
        first = not _restarted(pod)

        def once(bug: PlantedBug, at: int) -> int | None:
            return at if bug in bugs and first else None

        bugs = frozenset(bugs)
        return cls(
            aborts=PlantedBug.SERVER_ABORTS_ON_SIGTERM in bugs,
            hangs=PlantedBug.SERVER_HANGS_ON_SIGTERM in bugs,
            healthy_while_loading=PlantedBug.SERVER_HEALTHY_WHILE_LOADING in bugs,
            step_s=SLOW_STEP_S if PlantedBug.SERVER_DECODES_SLOWLY in bugs else 0.0,
            stutters=PlantedBug.SERVER_STUTTERS in bugs,
            late_s=LATE_S if bugs & LATE else 0.0,
            late_from_tokens=LONG_PROMPT if PlantedBug.SERVER_CHOKES_ON_LONG_PROMPTS in bugs else 0,
            late_below=URGENT_BELOW if PlantedBug.SERVER_SERVES_THE_URGENT_LATE in bugs else None,
            failing_share=FAILING_SHARE if PlantedBug.SERVER_FAILS_SOME_REQUESTS in bugs else 0.0,
            crash_at=once(PlantedBug.SERVER_CRASHES_UNDER_LOAD, CRASH_AT),
            engine_dies_at=once(PlantedBug.SERVER_ENGINE_DIES, CRASH_AT),
            engine_stuck_after=STUCK_AFTER if PlantedBug.SERVER_ENGINE_STUCK in bugs else None,
            silent_after=once(PlantedBug.SERVER_NEVER_ANSWERS, SILENT_AFTER),
            busy_at=BUSY_AT if PlantedBug.SERVER_SENDS_AWAY in bugs else None,
            rng=rng,
        )

    def slowed(self, profile: LatencyProfile) -> LatencyProfile:
        return replace(profile, floor_s=max(profile.floor_s, self.step_s))

    def held_back_s(self, prompt_tokens: int, priority: int) -> float:
        """For how long a request is left lying before the engine hears of it."""
        spared = prompt_tokens < self.late_from_tokens or (self.late_below is not None and priority >= self.late_below)
        return 0.0 if spared else self.late_s

    def begin(self, engine: Engine) -> None:
        """The model is loaded."""
        if self.stutters and not engine.stopped:
            loop = asyncio.get_running_loop()
            engine.freeze()
            loop.call_later(STUTTER_S, engine.thaw)
            loop.call_later(STUTTER_EVERY_S, self.begin, engine)

    def fails(self) -> bool:
        return self.failing_share > 0 and self.rng is not None and self.rng.random() < self.failing_share


NONE = Mischief()


def _restarted(pod: Json) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(int(status.get("restartCount") or 0) > 0 for status in statuses)
