"""What the provisioner orders, as tables: pods, rooms and pools in; new nodes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fakes.config import PoolConfig
from fakes.controllers.karpenter import api
from fakes.controllers.karpenter.plan import Plan, Template, lacking_variety, make_plan
from fakes.controllers.karpenter.state import bound_members, leaving_nodes, pods_needing_room, rooms
from fakes.controllers.placement import NodeRoom
from fakes.nodes.labels import node_labels
from harness.kube.port import Json

ON_DEMAND = PoolConfig("on-demand", "on-demand", stock=6)
SPOT = PoolConfig("spot", "spot", stock=1)
CAPACITIES = {p.name: api.pool_capacity(p) for p in (ON_DEMAND, SPOT)}


def pod(name: str, gpus: int = 1, *, gang: str = "", node: str = "", deleting: bool = False, **spec: object) -> Json:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}, "requests": {"nvidia.com/gpu": str(gpus)}}
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    found: Json = {
        "metadata": {"name": name, "namespace": "inference", "uid": name},
        "spec": {"containers": [{"name": "c", "resources": resources}], **spec},
        "status": {"phase": "Running"} if node else {"phase": "Pending", "conditions": [unschedulable]},
    }
    if gang:
        found["spec"]["schedulingGroup"] = {"podGroupName": gang}
    if node:
        found["spec"]["nodeName"] = node
    if deleting:
        found["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z"
    return found


def node(name: str, pool: PoolConfig = ON_DEMAND, gpus: int = 4, *taints: Json) -> Json:
    allocatable = {**api.pool_capacity(pool), "nvidia.com/gpu": str(gpus)}
    if not gpus:
        del allocatable["nvidia.com/gpu"]
    meta = {"name": name, "labels": node_labels(pool, name)}
    return {"metadata": meta, "spec": {"taints": list(taints)}, "status": {"allocatable": allocatable}}


def claim(name: str, pool: PoolConfig = ON_DEMAND, *, initialized: bool = False, deleting: bool = False) -> Json:
    found = api.node_claim(pool, name, {}, None)
    if initialized:
        found["status"] = {"conditions": [api.condition(api.INITIALIZED, "True")]}
    if deleting:
        found["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z"
    return found


def template(pool: PoolConfig, left: int) -> Template:
    shape = {
        "metadata": {"name": "new", "labels": api.template_labels(pool)},
        "spec": {},
        "status": {"allocatable": api.pool_capacity(pool)},
    }
    return Template(pool.name, shape, left, api.weight(pool), pool.price_per_hour)


def group(name: str, min_count: int) -> dict[tuple[str, str], Json]:
    spec = {"schedulingPolicy": {"gang": {"minCount": min_count}}}
    return {("inference", name): {"metadata": {"name": name, "namespace": "inference"}, "spec": spec}}


def plan(pods: Sequence[Json], nodes: Sequence[Json] = (), claims: Sequence[Json] = (), *, spot: int = 0,
         on_demand: int = 5, groups: dict[tuple[str, str], Json] | None = None) -> Plan:  # fmt: skip
    leaving = leaving_nodes(nodes, claims)
    return make_plan(
        pods_needing_room(pods, leaving),
        rooms(nodes, claims, pods, CAPACITIES),
        [template(ON_DEMAND, on_demand), template(SPOT, spot)],
        groups or {},
        bound_members(pods, leaving),
    )


def made(found: Plan) -> list[tuple[str, int]]:
    return [(new.pool, len(new.pods)) for new in found.new]


PENDING = [pod(f"p{n}") for n in range(6)]
LLM = [pod(f"llm-{n}", node="spot-1") for n in range(3)]
GANG_B = [pod(f"b{n}", gang="b") for n in range(4)]


@pytest.mark.parametrize(
    "pods, nodes, claims, expected",
    [
        pytest.param([], [node("a")], [], [], id="nothing-pending"),
        pytest.param(PENDING[:1], [], [], [("on-demand", 1)], id="one-pod-one-node"),
        pytest.param(PENDING, [], [], [("on-demand", 4), ("on-demand", 2)], id="the-fewest-nodes"),
        pytest.param(PENDING[:1], [node("a")], [], [], id="fits-on-a-node-that-is-there"),
        pytest.param([*PENDING, pod("old", 3, node="a")], [node("a")], [], [("on-demand", 4), ("on-demand", 1)],
                     id="only-what-does-not-fit"),
        pytest.param(PENDING[:4], [], [claim("c")], [], id="no-second-node-while-one-is-in-flight"),
        pytest.param(PENDING[:4], [node("c", ON_DEMAND, 0, {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
                                        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})],
                     [claim("c")], [], id="nor-while-its-gpus-have-not-appeared"),
        pytest.param(PENDING[:1], [node("c", ON_DEMAND, 0)], [claim("c", initialized=True)], [("on-demand", 1)],
                     id="an-initialized-node-is-what-it-says"),
        pytest.param(PENDING[:5], [], [claim("c")], [("on-demand", 1)], id="one-more-than-what-is-in-flight"),
        pytest.param(PENDING[:1], [node("a", ON_DEMAND, 4, api.DISRUPTED_TAINT)], [], [("on-demand", 1)],
                     id="a-disrupted-node-is-no-room"),
        pytest.param([pod("a"), pod("terminating", 4, node="n", deleting=True)], [node("n")], [], [("on-demand", 1)],
                     id="a-terminating-pod-holds-its-gpus"),
        pytest.param([pod("big", 8)], [], [], [], id="too-big-for-any-pool"),
        pytest.param([pod("picky", nodeSelector={"karpenter.sh/capacity-type": "spot"})], [], [], [],
                     id="its-pool-is-out"),
        pytest.param([pod("handled", status=None) | {"status": {"phase": "Pending"}}], [], [], [],
                     id="the-scheduler-has-not-spoken"),
    ],
)  # fmt: skip
def test_new_nodes(pods: list[Json], nodes: list[Json], claims: list[Json], expected: list[tuple[str, int]]) -> None:
    assert made(plan(pods, nodes, claims)) == expected


def test_spot_comes_first_and_the_rest_goes_on_demand() -> None:
    assert made(plan(PENDING, spot=1)) == [("spot", 4), ("on-demand", 2)]


def test_limits_leave_pods_unplaced() -> None:
    found = plan(PENDING, on_demand=1)
    assert (made(found), len(found.unplaced)) == ([("on-demand", 4)], 2)


def test_pods_of_a_leaving_node_need_room_elsewhere_before_they_are_evicted() -> None:
    leaving = claim("spot-1", SPOT, initialized=True, deleting=True)
    nodes = [node("spot-1", SPOT), node("on-demand-2")]
    pods = [*LLM, pod("gang-0", node="spot-1", gang="a"), pod("gang-1", node="on-demand-2", gang="a"),
            pod("used", node="on-demand-2")]  # fmt: skip
    found = plan(pods, nodes, [leaving, claim("on-demand-2", initialized=True)], groups=group("a", 2))
    assert made(found) == [("on-demand", 2)]
    assert {name for _, name in found.placed} == {"on-demand-2"}


def test_an_evicted_pod_counts_as_its_replacement_and_not_twice() -> None:
    leaving = claim("spot-1", SPOT, initialized=True, deleting=True)
    pods = [pod("llm-0", node="spot-1", deleting=True), *LLM[1:], pod("llm-3")]
    found = plan(pods, [node("spot-1", SPOT)], [leaving])
    assert made(found) == [("on-demand", 3)]


def test_a_plan_asked_again_with_its_own_nodes_orders_nothing() -> None:
    first = plan(PENDING)
    again = plan(PENDING, claims=[claim(f"n{i}") for i, _ in enumerate(first.new)])
    assert (again.new, len(again.placed), again.unplaced) == ((), 6, ())


@pytest.mark.parametrize(
    "pods, min_count, on_demand, expected",
    [
        pytest.param(GANG_B[:3], 4, 5, [], id="too-few-members"),
        pytest.param(GANG_B, 4, 5, [("on-demand", 1)], id="three-fit-one-needs-a-node"),
        pytest.param(GANG_B, 4, 0, [], id="no-node-for-the-last-so-none-for-any"),
        pytest.param([*GANG_B[1:], pod("b0", gang="b", node="x")], 4, 5, [], id="a-bound-member-counts"),
        pytest.param([*GANG_B, pod("b4", gang="b")], 4, 5, [("on-demand", 2)], id="beyond-the-minimum-too"),
    ],
)
def test_gangs_go_whole(pods: list[Json], min_count: int, on_demand: int, expected: list[tuple[str, int]]) -> None:
    nodes = [node("a", ON_DEMAND, 3)]
    assert made(plan(pods, nodes, on_demand=on_demand, groups=group("b", min_count))) == expected


def test_a_gang_without_its_pod_group_is_left_to_wait() -> None:
    found = plan(GANG_B)
    assert (made(found), found.unplaced) == ([], ())


def test_a_gang_that_does_not_fit_gives_its_room_back() -> None:
    found = plan([*GANG_B, pod("single")], [node("a", ON_DEMAND, 3)], on_demand=0, groups=group("b", 4))
    assert [p["metadata"]["name"] for p, _ in found.placed] == ["single"]
    assert len(found.unplaced) == 4


def test_rooms_hold_what_their_pods_use() -> None:
    (room,) = rooms([node("a")], [], [pod("x", 3, node="a")], CAPACITIES)
    assert isinstance(room, NodeRoom)
    assert room.used["nvidia.com/gpu"] == 3


INSTANCE_TYPE = "node.kubernetes.io/instance-type"


@pytest.mark.parametrize(
    ("least", "gpus", "expected"),
    [
        pytest.param(2, 1, [("small", 1)], id="two-types-to-choose-from"),
        pytest.param(3, 1, [], id="never-three-of-them"),
        pytest.param(2, 3, [], id="a-pod-that-only-one-type-takes"),
        pytest.param(1, 3, [("large", 1)], id="one-is-always-a-choice"),
    ],
)
def test_a_node_is_ordered_only_where_enough_types_are_left(
    least: int, gpus: int, expected: list[tuple[str, int]]
) -> None:
    types = [PoolConfig("small", "on-demand", gpus=2, stock=5, instance_type="s"),
             PoolConfig("large", "on-demand", gpus=4, stock=5, instance_type="l")]  # fmt: skip
    offers = [replace(template(t, 5), nodepool="p", min_values={INSTANCE_TYPE: least}, price=t.gpus) for t in types]
    found = make_plan([pod("a", gpus)], [], offers, {}, {})
    assert made(found) == expected
    assert len(found.unplaced) == (0 if expected else 1)


def test_a_pod_that_would_leave_too_few_types_gets_a_node_of_its_own_or_none() -> None:
    types = [PoolConfig("small", "on-demand", gpus=2, stock=5, instance_type="s"),
             PoolConfig("large", "on-demand", gpus=4, stock=5, instance_type="l")]  # fmt: skip
    offers = [replace(template(t, 5), nodepool="p", min_values={INSTANCE_TYPE: 2}, price=t.gpus) for t in types]
    found = make_plan([pod("a", 2), pod("b", 2)], [], offers, {}, {})
    assert made(found) == [("small", 1), ("small", 1)], "together they would leave the large type alone"
    assert lacking_variety(offers[:1]) == (INSTANCE_TYPE,)
    assert lacking_variety([]) == ()
