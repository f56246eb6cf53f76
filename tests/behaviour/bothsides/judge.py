"""Plays scenarios on the real side, and compares the embedded side with what was played, just now or once before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bothsides.compare import Comparison, compare
from bothsides.embedded import play_embedded
from bothsides.lives import Lives, lives_of, plays_from_json, plays_to_json
from bothsides.play import Played
from bothsides.real import RealSide, real_side
from bothsides.stage import Scenario

from harness.stack.find import Binaries

RECORDED = Path(__file__).parent.parent / "recorded"
TRIES = 2
"""What differs is played once more: a machine that stalls for seconds shows as a difference too."""
ROUNDS = 3
"""So many plays are kept of each scenario when it is recorded, whether they agree or not."""
CROWDED_S = 0.4
"""A play during which our own process woke later than that says more of the machine than of Kubernetes: pods that are
ready in one moment were seen one by one, and a count that nobody sees on a calm machine stood for a second. It is
told and played again, and counts only if it agrees even so and not all plays are wanted."""
NOT_PLAYED = "it could not be played on the real side"


@dataclass(frozen=True, slots=True)
class Judged:
    """One scenario: what the real side did in each of its plays, and each beside the one that the embedded side does.
    ``plays`` has nothing in it ({}) where the real side could not be played."""

    scenario: Scenario
    comparisons: tuple[Comparison, ...]
    plays: tuple[Lives, ...]

    @property
    def agreeing(self) -> tuple[Comparison, ...]:
        return tuple(c for c in self.comparisons if c.agrees)

    @property
    def agrees(self) -> bool:
        """A busy machine plays a scenario twice in two ways; a difference that is real shows in most plays."""
        return bool(self.comparisons) and 2 * len(self.agreeing) >= len(self.comparisons)

    @property
    def shown(self) -> Comparison:
        """Of the plays that say what ``agrees`` says, the last."""
        return [c for c in self.comparisons if c.agrees or not self.agrees][-1]

    @property
    def differences(self) -> list[str]:
        return [d for c in self.comparisons for d in c.differences]


async def judge_real(
    scenarios: Sequence[Scenario], binaries: Binaries, folder: Path, told: Callable[[str], None], *,
    plays: int = TRIES, all_of_them: bool = False,
) -> list[Judged]:  # fmt: skip
    """One real control plane for all. Each scenario is played until it agrees, at most ``plays`` times; or, with
    ``all_of_them``, so often in any case. One of which each play was on a crowded machine is not in the answer."""
    kept: dict[str, list[Lives]] = {s.name: [] for s in scenarios}
    judged: dict[str, Judged] = {}
    async with real_side(binaries, folder) as side:
        for _ in range(2 * plays):
            left = [s for s in scenarios if len(kept[s.name]) < plays]
            if not all_of_them:
                left = [s for s in left if s.name not in judged or not judged[s.name].agreeing]
            async for scenario, played in _play(side, left):
                real: Lives = {}
                late_s = 0.0
                if isinstance(played, Exception):
                    told(f"{scenario.name}: {NOT_PLAYED}: {type(played).__name__}: {played}")
                else:
                    real, late_s = lives_of(scenario, played), played.late_s
                # In a thread, for it has a loop of its own.
                found = await asyncio.to_thread(judge, scenario, [*kept[scenario.name], real])
                agrees = found.comparisons[-1].agrees
                if late_s > CROWDED_S and (all_of_them or not agrees):
                    told(f"{scenario.name}: not counted, the machine was late by {late_s:.1f} s")
                    continue
                kept[scenario.name].append(real)
                judged[scenario.name] = found
                told(f"{scenario.name}: {'agrees' if agrees else 'differs'}")
    return [judged[s.name] for s in scenarios if s.name in judged]


async def _play(side: RealSide, scenarios: Sequence[Scenario]) -> AsyncIterator[tuple[Scenario, Played | Exception]]:
    shared = [s for s in scenarios if not s.alone]
    if shared:
        for scenario, played in zip(shared, (await side.play_together(shared)).values(), strict=True):
            yield scenario, played
    for scenario in scenarios:
        if scenario.alone:
            yield scenario, await side.play_alone(scenario)


def judge(scenario: Scenario, plays: Sequence[Lives]) -> Judged:
    """The embedded side is played once: it does the same each time."""
    played = play_embedded(scenario)
    if isinstance(played, Exception):
        why = f"it could not be played on the embedded side: {type(played).__name__}: {played}"
        return Judged(scenario, tuple(Comparison([why]) for _ in plays), tuple(plays))
    ours = lives_of(scenario, played)
    found = (compare(scenario, ours, real) if real else Comparison([NOT_PLAYED]) for real in plays)
    return Judged(scenario, tuple(found), tuple(plays))


def recorded(scenario: Scenario) -> list[Lives]:
    """The real side as it was recorded, play by play; empty where it never was."""
    file = RECORDED / f"{scenario.name}.json"
    return plays_from_json(file.read_text()) if file.is_file() else []


def record(scenario: Scenario, plays: Sequence[Lives]) -> None:
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{scenario.name}.json").write_text(plays_to_json(plays))
