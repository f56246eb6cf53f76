"""The comparison finds what was changed on purpose."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
from bothsides.catalogue import SCENARIOS
from bothsides.compare import compare
from bothsides.judge import NOT_PLAYED, judge, recorded
from bothsides.lives import Life, Lives, plays_from_json, plays_to_json, settled
from bothsides.stage import Explained
from bothsides.table import row

SCENARIO = SCENARIOS["first-rollout"]


def real() -> Lives:
    return recorded(SCENARIO)[0]


def test_a_recording_agrees_with_itself_and_survives_being_written():
    assert compare(SCENARIO, real(), plays_from_json(plays_to_json([{}, real()]))[1]).agrees


def test_most_plays_decide_and_the_others_are_told():
    late = copy.deepcopy(real())
    be_late(late)
    mostly = judge(SCENARIO, [real(), late, real()])
    assert mostly.agrees
    assert len(mostly.agreeing) == 2
    assert "2 of 3" in row(mostly)
    assert any(d.startswith("Deployment web, condition Available") for d in mostly.differences)
    assert not judge(SCENARIO, [late, real(), late]).agrees


def test_a_play_that_never_came_about_is_none_that_agrees():
    found = judge(SCENARIO, [{}])
    assert not found.agrees
    assert found.differences == [NOT_PLAYED]


def change_message(lives: Lives) -> None:
    life = lives["Deployment web"][0]
    t_s, (status, reason, _) = life.tracks["condition Available"][-1]
    life.tracks["condition Available"][-1] = (t_s, (status, reason, "something else"))


def drop_a_step(lives: Lives) -> None:
    del lives["Deployment web"][0].tracks["condition Progressing"][0]


def lose_a_pod(lives: Lives) -> None:
    lives["Pod web@1*"].pop()


def lose_an_event(lives: Lives) -> None:
    del lives["Event Deployment web"]


def be_late(lives: Lives) -> None:
    track = lives["Deployment web"][0].tracks["condition Available"]
    track[-1] = (track[-1][0] + 5.0, track[-1][1])


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (change_message, "Deployment web, condition Available"),
        (drop_a_step, "Deployment web, condition Progressing"),
        (lose_a_pod, "Pod web@1*: 2 of them on the embedded side, 3 on the real one"),
        (lose_an_event, "Event Deployment web: 0 of them on the embedded side, 1 on the real one"),
        (be_late, "Deployment web, condition Available"),
    ],
)
def test_a_change_is_found(change: Callable[[Lives], None], seen: str):
    changed = copy.deepcopy(real())
    change(changed)
    differences = compare(SCENARIO, changed, real()).differences
    assert any(difference.startswith(seen) for difference in differences), differences


def test_a_count_on_its_way_is_no_state():
    life = Life()
    for t_s, value in ((0.0, 0), (1.0, 3), (1.4, 4), (6.0, 5)):
        life.note(t_s, "count replicas", value)
        life.note(t_s, "condition Ready", value)
    kept = settled(life, 0.7)
    assert [value for _, value in kept.tracks["count replicas"]] == [0, 4, 5]
    assert [value for _, value in kept.tracks["condition Ready"]] == [0, 3, 4, 5]


def test_what_is_explained_covers_no_more_than_its_pattern():
    explained = Explained("Event Deployment *", "why")
    assert explained.covers("Event Deployment web", "Normal ScalingReplicaSet ...")
    assert not explained.covers("Deployment web", "condition Available")
