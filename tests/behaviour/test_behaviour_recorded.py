"""The embedded control plane against what a real one was recorded to do; needs no programs of Kubernetes."""

from __future__ import annotations

from pathlib import Path

import pytest
from bothsides.catalogue import SCENARIOS
from bothsides.embedded import play_embedded
from bothsides.judge import RECORDED, judge, recorded
from bothsides.lives import lives_of, to_json
from bothsides.stage import Scenario
from bothsides.table import row

PAGE = Path(__file__).parents[2] / "docs" / "behaviour.md"
IN_VIRTUAL_TIME = [s for s in SCENARIOS.values() if not s.kubectl and recorded(s)]
"""Those that run kubectl need real time, and a few were never recorded: make behaviour plays all of them."""


@pytest.mark.parametrize("scenario", [pytest.param(s, id=s.name) for s in IN_VIRTUAL_TIME])
def test_embedded_does_as_the_real_one_did(scenario: Scenario):
    found = judge(scenario, recorded(scenario))
    assert found.agrees, "\n".join(found.differences)
    assert found.shown.transitions > 0
    shown = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{scenario.name}` |")]
    assert shown == [row(found)], 'out of date: make behaviour ARGS="--recorded --table docs/behaviour.md"'


def test_enough_is_recorded():
    assert len(IN_VIRTUAL_TIME) >= 30


def test_nothing_is_recorded_that_is_not_played():
    assert {f.stem for f in RECORDED.glob("*.json")} <= SCENARIOS.keys()


@pytest.mark.parametrize("name", ["rolling-surge", "hpa-up", "schedule-preemption"])
def test_the_same_seed_gives_the_same_bytes(name: str):
    scenario = SCENARIOS[name]
    first, second = play_embedded(scenario, seed=3), play_embedded(scenario, seed=3)
    assert not isinstance(first, Exception)
    assert not isinstance(second, Exception)
    assert to_json(lives_of(scenario, first)) == to_json(lives_of(scenario, second))
    assert [s.object for s in first.seen] == [s.object for s in second.seen]
