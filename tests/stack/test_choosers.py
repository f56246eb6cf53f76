"""The real endpoint picker's choices, as they were kept, beside those of the embedded gateway."""

from __future__ import annotations

from pathlib import Path

import pytest
from choosers import chosen, embedded, kept

APART_MAX = 8
"""Of the check ``routing``."""
ALIKE = "epp-drains-replicas"
"""In the others the picker goes by what it has cached, or by what it read before a replica's metrics failed, which no
count of requests in flight does (docs/fidelity.md)."""
EACH_TIME = (ALIKE,)


@pytest.mark.parametrize("name", [name for name in kept() if name in EACH_TIME])
def test_where_nothing_is_wrong_both_spread_and_neither_sends_to_who_goes(name: str, tmp_path: Path) -> None:
    real, ours = kept()[name], chosen(embedded(name, tmp_path))
    for side in (real, ours):
        assert side.requests > 50
        assert (side.to_going, side.behind_most < APART_MAX) == (0, True), side
    assert real.most_share == pytest.approx(ours.most_share, abs=0.2)


@pytest.mark.parametrize("name", [name for name in kept() if name != ALIKE])
def test_what_the_picker_was_found_to_do_is_kept(name: str) -> None:
    assert kept()[name].behind_most >= APART_MAX
    assert kept()[name].most_share > 0.4
