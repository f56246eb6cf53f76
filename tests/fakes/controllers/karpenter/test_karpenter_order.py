"""Which node Karpenter gives up first: the one that saves most for the trouble of moving its pods."""

from __future__ import annotations

import pytest

from fakes.controllers.karpenter.candidates import Candidate, disruption_cost
from fakes.controllers.karpenter.consolidation import empty, underutilized
from fakes.controllers.karpenter.nodepools import rules
from fakes.controllers.karpenter.plan import Plan
from harness.kube.port import Json

RULES = rules({"metadata": {"name": "gpu"}, "spec": {"disruption": {"consolidateAfter": "0s"}}})


def pod(name: str, cost: int = 0) -> Json:
    annotations = {"controller.kubernetes.io/pod-deletion-cost": str(cost)}
    return {"metadata": {"name": name, "uid": name, "annotations": annotations}, "spec": {}}


def candidate(name: str, price: float, *pods: Json) -> Candidate:
    claim = {"metadata": {"name": name}}
    return Candidate(claim, claim, RULES, pods, price, False, disruption_cost(pods))


def test_of_two_empty_nodes_the_dearer_goes_first() -> None:
    decision = empty([candidate("a", 5.0), candidate("b", 9.0)], {"gpu": 1})
    assert decision is not None and decision.names == {"b"}


@pytest.mark.parametrize(
    ("of_b", "first"),
    [((pod("b-1"),), "b"), ((pod("b-1"), pod("b-2")), "b"), (tuple(pod(f"b-{n}") for n in "1234"), "a")],
)
def test_a_dear_node_goes_first_unless_it_has_many_pods(of_b: tuple[Json, ...], first: str) -> None:
    found = [candidate("a", 5.0, pod("a-1")), candidate("b", 9.0, *of_b)]
    moves = lambda gone: Plan(placed=tuple((p, "c") for c in gone for p in c.pods), new=(), unplaced=())  # noqa: E731
    decision = underutilized(found, {"gpu": 1}, moves, lambda candidate, why: None)
    assert decision is not None and decision.names == {first}


def test_a_pod_that_is_cheap_to_delete_makes_no_other_cheaper() -> None:
    assert disruption_cost([pod("a", -(2**31))]) == 1.0 < disruption_cost([pod("a", -(2**31)), pod("b")]) == 2.0
