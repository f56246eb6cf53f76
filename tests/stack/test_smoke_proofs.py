"""Every component that `make stack` builds has a proof."""

from __future__ import annotations

from proofs import PROOFS

from harness.stack.description import addons


def test_each_cheap_component_is_proven() -> None:
    assert {name for name, described in addons().items() if described.addon.cheap} <= set(PROOFS) <= set(addons())
