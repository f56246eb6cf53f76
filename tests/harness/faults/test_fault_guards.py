from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from harness.errors import GuardRefused
from harness.faults.catalogue.consolidation import Consolidation
from harness.faults.catalogue.node_silent import NodeSilent
from harness.faults.catalogue.spot_interruption import SpotInterruption
from harness.faults.fault import Fault, NodePick, fidelity_on
from harness.faults.fidelity import TARGETS, VIRTUAL, Fidelity
from harness.faults.guards import OPT_IN_LABEL, check_arguments, check_guards, check_targets
from harness.faults.pick import FleetNode
from harness.faults.registry import FAULTS
from harness.faults.scene import Scene
from harness.faults.undoing import UNDOING
from harness.spec.actions import ACTIONS


@dataclass(frozen=True)
class Action:
    fault_id: str
    name: str


SPOT = Action("spot_interruption-1", "spot_interruption")
GANG = Action("apply_objects-1", "apply_objects")
HEAL = Action("heal-1", "heal")
FLEET = (FleetNode("a", {OPT_IN_LABEL: "allowed"}), FleetNode("b", {}), FleetNode("c", {OPT_IN_LABEL: "no"}))


def test_every_action_that_is_a_fault_is_in_the_registry_and_agrees_with_it() -> None:
    assert set(FAULTS) == set(ACTIONS) - {"heal"}
    for name, fault in FAULTS.items():
        assert fault.name == name and ACTIONS[name] is fault and set(fault.undone_by) <= set(UNDOING)
        assert set(fault.fidelity) <= {*TARGETS, VIRTUAL} and (fault.__doc__ or "").startswith("Blast radius: ")
    assert len({fault.colour for fault in FAULTS.values()}) == len(FAULTS)


def test_fidelity_by_fault() -> None:
    assert check_guards([SPOT, GANG, HEAL], "embedded") == {
        "spot_interruption-1": Fidelity.EMULATED,
        "apply_objects-1": Fidelity.NATIVE,
    }


def test_what_is_emulated_is_native_where_its_component_is_real() -> None:
    assert fidelity_on(Consolidation, "controlplane") is Fidelity.EMULATED
    assert fidelity_on(Consolidation, "controlplane", ("kueue", "karpenter")) is Fidelity.NATIVE
    assert fidelity_on(Consolidation, "kubeconfig", ("karpenter",)) is Fidelity.UNSUPPORTED
    assert fidelity_on(SpotInterruption, "controlplane", ("karpenter",)) is Fidelity.EMULATED


def test_nodes_that_a_provisioner_brings_are_picked_when_the_fault_begins() -> None:
    for fault, more in ((SpotInterruption, {"notice_s": 0, "one_per_zone": True}), (NodeSilent, {"hold_s": 9})):
        late = fault.model_validate({"after_s": 1, "nodes": {"selector": "a=b", "brought": True}, **more})
        assert late.pick(Scene(), Random(1)) == () and late.radius(Scene(), ()) == {"nodes": 1}
        came = Scene(nodes=(FleetNode("n", {"a": "b"}),), running=True)
        assert not late.fits(came, ()) and late.pick(came, Random(1)) == ("n",)


def test_an_unsupported_fault_is_refused_before_the_run() -> None:
    with pytest.raises(
        GuardRefused, match=r"target kubeconfig does not support spot_interruption-1 \(unsupported: the Kubernetes"
    ) as refused:
        check_guards([GANG, SPOT], "kubeconfig")
    assert refused.value.hint == "run it on controlplane, embedded, kind, node, or take the action out"


@dataclass(frozen=True)
class Told(Action):
    fault: Fault


@pytest.mark.parametrize(
    ("fault", "target", "why"),
    [
        ({"how": "off"}, "embedded", "off: its nodes are no machines"),
        ({"how": "off"}, "kind", None),
        ({"how": "runtime_down"}, "kind", "renews its lease; say until: not ready"),
        ({"how": "runtime_down", "until": "not ready"}, "node", None),
    ],
)
def test_a_way_that_a_target_cannot_have_is_refused_with_its_reason(
    fault: dict[str, str], target: str, why: str | None
) -> None:
    silent = NodeSilent(after_s=1, hold_s=9, nodes=NodePick(selector="a=b"), **fault)  # type: ignore[arg-type]  # as read
    actions = [Told("node_silent-1", "node_silent", silent)]
    if why is None:
        check_arguments(actions, target)
    else:
        with pytest.raises(GuardRefused, match=why):
            check_arguments(actions, target)


@pytest.mark.parametrize(
    ("targets", "count", "target", "said"),
    [
        (("a", "b"), 1, "embedded", "more nodes than the 1 it may hit"),
        (("a", "a"), 2, "embedded", "more nodes than"),
        (("a", "z"), 2, "embedded", "no node z"),
        (("a", "b", "c"), 3, "kubeconfig", "b, c did not opt in"),
    ],
)
def test_targets_that_are_refused(targets: tuple[str, ...], count: int, target: str, said: str) -> None:
    with pytest.raises(GuardRefused, match=said):
        check_targets("spot_interruption-1", targets, count, FLEET, target)


def test_targets_that_are_allowed() -> None:
    check_targets("spot_interruption-1", ("b",), 1, FLEET, "embedded")
    check_targets("spot_interruption-1", ("a",), 1, FLEET, "kubeconfig")
