"""Every component has a proof."""

from __future__ import annotations

from proofs import PROOFS

from harness.stack.description import addons


def test_each_component_is_proven() -> None:
    assert set(PROOFS) == set(addons())
