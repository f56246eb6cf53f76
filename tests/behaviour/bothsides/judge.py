"""Plays scenarios on the real side, and compares the embedded side with what was played, just now or once before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bothsides.compare import Comparison, compare
from bothsides.embedded import play_embedded
from bothsides.lives import Lives, from_json, lives_of, to_json
from bothsides.play import Played
from bothsides.real import real_side
from bothsides.stage import Scenario

from harness.kube.port import ApiError
from harness.stack.find import Binaries

RECORDED = Path(__file__).parent.parent / "recorded"


@dataclass(frozen=True, slots=True)
class Judged:
    scenario: Scenario
    comparison: Comparison
    embedded: Lives
    real: Lives


async def play_real(
    scenarios: Sequence[Scenario], binaries: Binaries, folder: Path, told: Callable[[str], None]
) -> dict[str, Lives | str]:
    """One real control plane for all of them. A text says why a scenario could not be played."""
    lives: dict[str, Lives | str] = {}

    def done(scenario: Scenario, played: Played | Exception) -> None:
        failed = isinstance(played, Exception)
        lives[scenario.name] = f"{type(played).__name__}: {played}" if failed else lives_of(scenario, played)
        told(f"played {scenario.name} on the real side")

    async with real_side(binaries, folder) as side:
        shared = [s for s in scenarios if not s.alone]
        if shared:
            for scenario, played in zip(shared, (await side.play_together(shared)).values(), strict=True):
                done(scenario, played)
        for scenario in scenarios:
            if scenario.alone:
                done(scenario, await side.play_alone(scenario))
    return lives


def judge(scenario: Scenario, real: Lives | str) -> Judged:
    # What is declared as explained is left out here, so that a recording holds all that was seen.
    try:
        ours = lives_of(scenario, play_embedded(scenario))
    except (ApiError, TimeoutError) as error:
        failed = Comparison([f"it could not be played on the embedded side: {type(error).__name__}: {error}"])
        return Judged(scenario, failed, {}, {} if isinstance(real, str) else real)
    if isinstance(real, str):
        failed = Comparison([f"it could not be played on the real side: {real}"])
        return Judged(scenario, failed, ours, {})
    return Judged(scenario, compare(scenario, ours, real), ours, real)


def recorded(scenario: Scenario) -> Lives | None:
    """The real side as it was recorded, or None."""
    file = RECORDED / f"{scenario.name}.json"
    return from_json(file.read_text()) if file.is_file() else None


def record(scenario: Scenario, real: Lives) -> None:
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{scenario.name}.json").write_text(to_json(real))
