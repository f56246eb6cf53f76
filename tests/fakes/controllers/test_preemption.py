"""Who has to make room, and where."""

from __future__ import annotations

from typing import Any

from controller_cluster import node, pdb, pod

from fakes.controllers.cluster import Cluster
from fakes.controllers.objects import name_of
from fakes.controllers.preemption import Plan, plan_preemption
from harness.kube.port import Json


def holder(name: str, where: str, priority: int = 0, began: str = "2026-01-01T00:00:00Z") -> Json:
    made = pod(name, node=where, spec={"priority": priority})
    made["status"]["startTime"] = began
    return made


def plan(
    nodes: list[Json], pods: list[Json], priority: int = 100, budgets: list[Json] | None = None, **spec: Any
) -> Any:
    cluster, wanting = Cluster(nodes, pods), pod("wanting", spec={"priority": priority, **spec})
    refusals = cluster.choose(wanting)
    assert not isinstance(refusals, str)
    return plan_preemption(cluster, wanting, refusals, budgets or [])


def victims(found: Any) -> tuple[str, list[str]]:
    assert isinstance(found, Plan), found
    return found.node, [name_of(v) for v in found.victims]


def test_the_youngest_of_the_least_important_goes():
    early, late = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
    pods = [holder("a", "n1", 5, early), holder("b", "n1", 1, early), holder("c", "n1", 1, late)]
    assert victims(plan([node("n1", 3)], pods)) == ("n1", ["c"])


def test_the_node_with_the_least_important_victims_is_taken():
    pods = [holder("a", "n1", 5), holder("b", "n2", 1), holder("c", "n3", 3)]
    assert victims(plan([node("n1", 1), node("n2", 1), node("n3", 1)], pods)) == ("n2", ["b"])


def test_a_protected_pod_is_spared_even_at_the_price_of_a_more_important_one():
    kept, free = holder("kept", "n1", 1), holder("free", "n2", 50)
    free["metadata"]["labels"] = {"app": "other"}
    budget = pdb(minAvailable=1) | {"status": {"disruptionsAllowed": 0}}
    assert victims(plan([node("n1", 1), node("n2", 1)], [kept, free], budgets=[budget])) == ("n2", ["free"])


def test_equals_are_not_asked_to_go():
    said = plan([node("n1", 1)], [holder("a", "n1", 100)])
    assert said == "0/1 nodes are available: 1 No preemption victims found for incoming pod."


def test_whoever_is_polite_waits():
    said = plan([node("n1", 1)], [holder("a", "n1")], preemptionPolicy="Never")
    assert said == "not eligible due to preemptionPolicy=Never."
