"""Which pods a gang of higher priority takes the room of."""

from __future__ import annotations

from typing import Any

import pytest
from controller_cluster import node, pdb, pod, pod_group

from fakes.controllers.cluster import Cluster
from fakes.controllers.gang_preemption import NEVER, NO_VICTIMS, ONGOING, GangRoom, plan_gang_preemption
from fakes.controllers.informer import key_of
from fakes.controllers.objects import name_of
from fakes.controllers.preemption import Plan, plan_preemption
from harness.kube.port import Json

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def group(name: str, members: int, priority: int, **spec: Any) -> Json:
    made = pod_group(name, members)
    made["spec"] |= {"priority": priority, **spec}
    return made


def at_work(name: str, where: str, gang: str | None = None, priority: int = 0, began: str = EARLY) -> Json:
    made = pod(name, node=where, group=gang, spec={"priority": priority})
    made["status"]["startTime"] = began
    return made


def high(count: int, **spec: Any) -> list[Json]:
    return [pod(f"high-{n}", group="high", spec={"priority": 100, **spec}) for n in range(count)]


def room(
    nodes: list[Json], there: list[Json], wanting: list[Json], groups: list[Json], budgets: list[Json] | None = None
) -> GangRoom | str:
    """The plan for ``high``; looking for it must leave the cluster as it was."""
    cluster = Cluster(nodes, there)
    mine = group("high", len(wanting), 100)
    every = {key_of(g): g for g in (mine, *groups)}
    before = [(name, sorted(map(name_of, cluster.pods_on(name)))) for name in cluster.rooms]
    found = plan_gang_preemption(cluster, mine, wanting, 0, every, budgets or [])
    assert [(name, sorted(map(name_of, cluster.pods_on(name)))) for name in cluster.rooms] == before
    return found


def victims(found: GangRoom | str) -> list[str]:
    assert isinstance(found, GangRoom), found
    assert found.sentence == f"found a placement for podgroup, preempting {len(found.victims)} victims"
    return [name_of(v) for v in found.victims]


def test_no_more_leave_than_must():
    low = [at_work(f"low-{n}", f"n{n // 2}", "low") for n in range(4)]
    found = room([node("n0", 2), node("n1", 2)], low, high(2), [group("low", 4, 0)])
    assert len(victims(found)) == 2
    assert isinstance(found, GangRoom)
    assert {name_of(p): n for p, n in found.placed}.keys() == {"high-0", "high-1"}


def test_a_gang_that_is_disrupted_as_one_leaves_as_one():
    low = [at_work(f"low-{n}", f"n{n // 2}", "low") for n in range(4)]
    found = room([node("n0", 2), node("n1", 2)], low, high(1), [group("low", 4, 0, disruptionMode={"all": {}})])
    assert sorted(victims(found)) == ["low-0", "low-1", "low-2", "low-3"]


def test_single_pods_go_before_members_of_gangs_and_the_young_before_the_old():
    there = [at_work("member", "n0", "low", began=LATE), at_work("old", "n0"), at_work("young", "n0", began=LATE)]
    assert victims(room([node("n0", 3)], there, high(1), [group("low", 1, 0)])) == ["young"]
    assert victims(room([node("n0", 3)], there, high(2), [group("low", 1, 0)])) == ["old", "young"]


def test_what_a_budget_protects_goes_last():
    there = [at_work("kept", "n0", began=LATE), at_work("free", "n0")]
    there[1]["metadata"]["labels"] = {"app": "free"}
    budget = pdb(minAvailable=1) | {"status": {"disruptionsAllowed": 0}}
    assert victims(room([node("n0", 2)], there, high(1), [], [budget])) == ["free"]


def test_the_priority_of_a_member_is_that_of_its_group():
    there = [at_work("a", "n0", "above", priority=0)]
    assert room([node("n0", 1)], there, high(1), [group("above", 1, 500)]) == NO_VICTIMS


@pytest.mark.parametrize(
    ("wanting", "said"),
    [
        pytest.param(high(3), "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining", id="not-even-then"),
        pytest.param(high(1, preemptionPolicy="Never"), NEVER, id="never"),
    ],
)
def test_nobody_leaves_in_vain(wanting: list[Json], said: str):
    there = [at_work("a", "n0"), at_work("b", "n0")]
    assert room([node("n0", 2)], there, wanting, []) == said


def test_while_its_victims_leave_it_waits_for_them():
    leaving = at_work("a", "n0")
    leaving["metadata"]["deletionTimestamp"] = LATE
    leaving["status"]["conditions"] = [
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    ]
    wanting = high(1)
    wanting[0]["status"]["nominatedNodeName"] = "n0"
    found = room([node("n0", 1)], [leaving], wanting, [])
    assert isinstance(found, GangRoom)
    assert (found.sentence, list(map(name_of, found.leaving))) == (ONGOING, ["a"])


def test_a_single_pod_evicts_a_gang_as_one_too():
    low = [at_work(f"low-{n}", f"n{n}", "low") for n in range(2)]
    cluster, wanting = Cluster([node("n0", 1), node("n1", 1)], low), pod("wanting", spec={"priority": 100})
    refusals = cluster.choose(wanting)
    assert not isinstance(refusals, str)
    one = group("low", 2, 0, disruptionMode={"all": {}})
    found = plan_preemption(cluster, wanting, refusals, [], {key_of(one): one})
    assert isinstance(found, Plan)
    assert sorted(map(name_of, found.victims)) == ["low-0", "low-1"]
