"""The real endpoint picker's choices, as they were kept, beside those of the embedded gateway."""

from __future__ import annotations

from pathlib import Path

import pytest
from choosers import chosen, embedded, kept

APART_MAX = 8
"""Of the check ``routing``."""


@pytest.mark.parametrize("name", kept())
def test_ours_spreads_what_the_picker_was_found_to_keep_together(name: str, tmp_path: Path) -> None:
    """The picker goes by what a replica has cached; no count of requests in flight does (docs/fidelity.md)."""
    real, ours = kept()[name], chosen(embedded(name, tmp_path))
    assert ours.requests == pytest.approx(real.requests, abs=5)
    assert (real.to_going, ours.to_going) == (0, 0)
    assert ours.behind_most < APART_MAX <= real.behind_most
    assert ours.most_share < 0.4 < real.most_share
