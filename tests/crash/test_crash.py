"""Ten of the moments of ``make test-crash``: whatever is killed, the others stop, and nothing of ours is left."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from crash_moment import KINDS, all_variants, draw
from crash_run import play_all

SEED, MOMENTS = 1, 10


def test_moments_are_drawn_from_a_seed_and_meet_every_variant() -> None:
    assert draw(SEED, 50) == draw(SEED, 50) != draw(SEED + 1, 50)
    drawn = draw(SEED, 200)
    assert {name for moment in drawn for name in moment.faults} == set(all_variants())
    assert {moment.victim for moment in drawn[:MOMENTS]} == set(KINDS)


@pytest.mark.alone
def test_whoever_is_killed_the_others_stop_and_everything_is_as_it_was() -> None:
    outcomes = list(play_all(draw(SEED, MOMENTS), chunk=MOMENTS // 2))
    assert [asdict(o) for o in outcomes if o.problems] == []
    assert sum(o.pending_at_kill > 0 for o in outcomes) >= MOMENTS // 5  # else it would prove nothing
