"""Plays scenarios on the real side, and compares the embedded side with what was played, just now or once before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bothsides.compare import Comparison, compare
from bothsides.embedded import play_embedded
from bothsides.lives import Lives, from_json, lives_of, to_json
from bothsides.play import Played
from bothsides.real import RealSide, real_side
from bothsides.stage import Scenario

from harness.stack.find import Binaries

RECORDED = Path(__file__).parent.parent / "recorded"
TRIES = 2
"""What differs is played once more: a machine that stalls for seconds shows as a difference too."""


@dataclass(frozen=True, slots=True)
class Judged:
    scenario: Scenario
    comparison: Comparison
    real: Lives


async def judge_real(
    scenarios: Sequence[Scenario], binaries: Binaries, folder: Path, told: Callable[[str], None], tries: int = TRIES
) -> list[Judged]:
    """One real control plane for all of them."""
    judged: dict[str, Judged] = {}
    async with real_side(binaries, folder) as side:
        left = list(scenarios)
        for _ in range(tries):
            async for scenario, played in _play(side, left):
                # In a thread, for it has a loop of its own.
                judged[scenario.name] = await asyncio.to_thread(judge_played, scenario, played)
                told(f"{scenario.name}: {'agrees' if judged[scenario.name].comparison.agrees else 'differs'}")
            left = [s for s in left if not judged[s.name].comparison.agrees]
    return [judged[s.name] for s in scenarios]


async def _play(side: RealSide, scenarios: Sequence[Scenario]):  # type: ignore[no-untyped-def]  # a generator of pairs
    shared = [s for s in scenarios if not s.alone]
    if shared:
        for scenario, played in zip(shared, (await side.play_together(shared)).values(), strict=True):
            yield scenario, played
    for scenario in scenarios:
        if scenario.alone:
            yield scenario, await side.play_alone(scenario)


def judge_played(scenario: Scenario, played: Played | Exception) -> Judged:
    if isinstance(played, Exception):
        why = f"it could not be played on the real side: {type(played).__name__}: {played}"
        return Judged(scenario, Comparison([why]), {})
    return judge(scenario, lives_of(scenario, played))


def judge(scenario: Scenario, real: Lives) -> Judged:
    played = play_embedded(scenario)
    if isinstance(played, Exception):
        why = f"it could not be played on the embedded side: {type(played).__name__}: {played}"
        return Judged(scenario, Comparison([why]), real)
    return Judged(scenario, compare(scenario, lives_of(scenario, played), real), real)


def recorded(scenario: Scenario) -> Lives | None:
    """The real side as it was recorded, or None."""
    file = RECORDED / f"{scenario.name}.json"
    return from_json(file.read_text()) if file.is_file() else None


def record(scenario: Scenario, real: Lives) -> None:
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{scenario.name}.json").write_text(to_json(real))
