"""Two faults at once, all of ours dead at some moment, then a heal: nothing is left, whatever the faults were."""

from __future__ import annotations

import pytest
from crash_virtual import draw_pair, killed_at

PAIRS = 24
SAME_LINK = [("link_trouble", "latency to clients"), ("link_trouble", "loss to clients")]
SAME_POOL = [("consolidation", "empty"), ("consolidation", "under-utilised")]


def test_whatever_was_going_on_nothing_is_left() -> None:
    changed = 0
    for seed in range(PAIRS):
        found = killed_at(draw_pair(seed), seed)
        assert found.problems == [], f"seed {seed}, {draw_pair(seed)}"
        changed += len(found.changed)
    assert changed > PAIRS  # else there was nothing to be left


@pytest.mark.parametrize("pair", [SAME_LINK, SAME_POOL], ids=["same link", "same pool"])
@pytest.mark.parametrize("seed", range(3))
def test_two_faults_that_would_change_the_same_leave_nothing(pair: list[tuple[str, str]], seed: int) -> None:
    """The second is refused: it would remember the first one's change as what was there before."""
    assert killed_at(pair, seed).problems == []


def test_pairs_are_drawn_from_a_seed() -> None:
    assert draw_pair(1) == draw_pair(1) and len({tuple(draw_pair(s)) for s in range(30)}) > 25
