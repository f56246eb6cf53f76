"""Faults on a small world in virtual time: seen, healed, missed when they do nothing. All: make fault-matrix."""

from __future__ import annotations

import json

import pytest
from virtual_runs import ROOT

from harness.faults.fault import Variant
from harness.faults.registry import FAULTS
from harness.run.virtual.rehearsal import rehearse

WORKLOAD = ROOT / "experiments" / "manifests" / "llm.yaml"
ALL = [(name, variant) for name, fault in FAULTS.items() for variant in fault.variants]
SLICE = [
    (name, fault.variants[0])
    for name, fault in FAULTS.items()
    if name
    in ("node_silent", "node_drain", "device_plugin_down", "pod_loss", "capacity_refused", "api_errors", "link_trouble")
]


@pytest.mark.parametrize(("name", "variant"), SLICE, ids=lambda v: getattr(v, "name", v))
def test_a_variant_is_seen_and_healed(name: str, variant: Variant) -> None:
    played = rehearse(FAULTS[name], variant, WORKLOAD)
    assert played.observed and played.healed is not False, played.said


@pytest.mark.parametrize(("name", "variant"), SLICE, ids=lambda v: getattr(v, "name", v))
def test_a_fault_that_does_nothing_is_not_observed(name: str, variant: Variant) -> None:
    played = rehearse(FAULTS[name], variant, WORKLOAD, disconnected=True)
    assert "not_observed" in played.stages, played.said


def test_every_variant_was_played_and_proved() -> None:
    rows = json.loads((ROOT / "docs" / "fault-matrix.json").read_text())
    good = {(r["fault"], r["variant"]) for r in rows if r["observed"] and r["healed"] is not False and r["no_op"]}
    assert good == {(name, variant.name) for name, variant in ALL}
    assert len(good) >= 78
