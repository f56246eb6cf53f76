"""Which plays count: one on a crowded machine says nothing against anybody."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from bothsides import judge
from bothsides.catalogue import SCENARIOS
from bothsides.embedded import play_embedded
from bothsides.judge import CROWDED_S, TRIES, judge_real
from bothsides.play import Played
from bothsides.stage import Scenario

from harness.stack.find import Binaries

SCENARIO = SCENARIOS["first-rollout"]
CALM_S, CROWD_S = 0.0, CROWDED_S + 1


@pytest.fixture(scope="module")
def right() -> Played:
    played = play_embedded(SCENARIO)
    assert isinstance(played, Played)
    return played


@pytest.fixture(scope="module")
def wrong(right: Played) -> Played:
    return replace(right, seen=type(right.seen)(s for s in right.seen if s.resource.kind != "ReplicaSet"))


async def judged(
    monkeypatch: pytest.MonkeyPatch, *plays: Played, all_of_them: bool = False
) -> tuple[list[bool], list[str]]:
    """Whether the scenario agrees, nothing where it was not judged, and what was said of each play."""
    left = list(plays)

    @contextlib.asynccontextmanager
    async def no_side(binaries: Binaries, folder: Path) -> AsyncIterator[None]:
        yield None

    async def play(side: None, scenarios: Sequence[Scenario]) -> AsyncIterator[tuple[Scenario, Played]]:
        for scenario in scenarios:
            yield scenario, left.pop(0)

    monkeypatch.setattr(judge, "real_side", no_side)
    monkeypatch.setattr(judge, "_play", play)
    said: list[str] = []
    found = await judge_real([SCENARIO], Binaries({}), Path(), said.append, all_of_them=all_of_them)
    assert not left
    return [each.agrees for each in found], said


async def test_a_difference_counts_where_the_machine_was_calm(monkeypatch: pytest.MonkeyPatch, wrong: Played) -> None:
    plays = [replace(wrong, late_s=CALM_S)] * TRIES
    assert (await judged(monkeypatch, *plays))[0] == [False]


async def test_a_difference_on_a_crowded_machine_is_played_again(
    monkeypatch: pytest.MonkeyPatch, right: Played, wrong: Played
) -> None:
    crowded = [replace(wrong, late_s=CROWD_S)] * TRIES
    agrees, said = await judged(monkeypatch, *crowded, replace(right, late_s=CALM_S))
    assert agrees == [True]
    assert [f"{SCENARIO.name}: not counted, the machine was late by {CROWD_S:.1f} s"] * TRIES == said[:TRIES]


async def test_what_was_crowded_in_all_its_plays_is_not_judged(monkeypatch: pytest.MonkeyPatch, wrong: Played) -> None:
    assert (await judged(monkeypatch, *[replace(wrong, late_s=CROWD_S)] * (2 * TRIES)))[0] == []


async def test_agreement_counts_on_a_crowded_machine_but_not_in_a_recording(
    monkeypatch: pytest.MonkeyPatch, right: Played
) -> None:
    crowded = replace(right, late_s=CROWD_S)
    assert (await judged(monkeypatch, crowded))[0] == [True]
    assert (await judged(monkeypatch, *[crowded] * (2 * TRIES), all_of_them=True))[0] == []
