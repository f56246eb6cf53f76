"""Silent nodes: taints, evictions, recovery."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from controller_cluster import NAMESPACE_NAME, Cluster, condition, deployment, eventually, node, running

from fakes.controllers.deployment import DeploymentController
from fakes.controllers.node_health import (
    Disruption,
    disruption_of,
    evictions_per_s,
    no_schedule_keys,
    stays_s,
    with_no_execute,
    with_no_schedule,
)
from fakes.controllers.node_lifecycle import NodeLifecycleController
from fakes.controllers.objects import condition_of, is_terminating, name_of, node_of
from fakes.controllers.replicaset import ReplicaSetController
from fakes.controllers.scheduler import Scheduler
from fakes.timing import Timing
from harness.kube.port import DEPLOYMENT, EVENT, NODE, Json

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
SCALE = 15.0


def with_ready(status: str | None) -> Json:
    made = node("n1")
    made["status"]["conditions"] = [] if status is None else [condition("Ready", status)]
    return made


@pytest.mark.parametrize(
    ("ready", "keys"), [("True", set()), ("False", {NOT_READY}), ("Unknown", {UNREACHABLE}), (None, {NOT_READY})]
)
def test_no_schedule_taints_follow_ready(ready, keys):
    assert no_schedule_keys(with_ready(ready)) == keys


def test_taints_of_others_are_kept():
    foreign = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    made = with_ready("Unknown")
    made["spec"]["taints"] = [foreign, {"key": NOT_READY, "effect": "NoSchedule"}]
    unreachable = {"key": UNREACHABLE, "effect": "NoSchedule", "timeAdded": "t"}
    assert with_no_schedule(made, "t") == [foreign, unreachable]
    assert with_no_execute(made, UNREACHABLE, "t") == [*made["spec"]["taints"], unreachable | {"effect": "NoExecute"}]
    made["spec"]["taints"] = [foreign, unreachable]
    assert with_no_schedule(made, "t2") is None
    assert with_no_execute(made, None, "t2") is None


@pytest.mark.parametrize(
    ("ready", "not_ready", "state", "per_s"),
    [
        (2, 1, Disruption.NONE, 0.1),
        (1, 2, Disruption.NONE, 0.1),
        (1, 3, Disruption.PARTIAL, 0.0),
        (20, 40, Disruption.PARTIAL, 0.01),
        (0, 2, Disruption.FULL, 0.1),
    ],
)
def test_disruption_of_a_zone(ready, not_ready, state, per_s):
    assert disruption_of(ready, not_ready) is state
    assert evictions_per_s(state, ready + not_ready, all_zones_full=False) == per_s


def test_nothing_is_evicted_when_no_node_at_all_is_ready():
    assert evictions_per_s(Disruption.FULL, 2, all_zones_full=True) == 0.0


def toleration(seconds: int | None, key: str = UNREACHABLE) -> Json:
    made: Json = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return made if seconds is None else made | {"tolerationSeconds": seconds}


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0.0),
        ([toleration(300)], 300.0),
        ([toleration(None)], None),
        ([toleration(300), toleration(10)], 10.0),
        ([toleration(10, "other")], 0.0),
        ([toleration(-5)], 0.0),
    ],
)
def test_how_long_a_pod_may_stay(tolerations, seconds):
    assert stays_s([{"key": UNREACHABLE, "effect": "NoExecute"}], tolerations) == seconds


def control(cluster: Cluster):
    timing = Timing(SCALE)
    return (
        DeploymentController(cluster.kube, cluster.wall, Random(0)).run(),
        ReplicaSetController(cluster.kube, cluster.wall, Random(1)).run(),
        Scheduler(cluster.kube, cluster.wall, timing).run(),
        NodeLifecycleController(cluster.kube, cluster.wall, timing).run(),
    )


async def taints_of(cluster: Cluster, name: str) -> set[tuple[str, str]]:
    found = await cluster.kube.get(NODE, name)
    return {(t["key"], t["effect"]) for t in found["spec"].get("taints") or []}


BOTH = {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}


async def start(cluster: Cluster, *nodes: str) -> None:
    cluster.kubelet.renew_s = 10 / SCALE
    for name in nodes:
        await cluster.add_node(name, 8)
    await cluster.kube.create(DEPLOYMENT, deployment(replicas=4), NAMESPACE_NAME)

    async def up() -> bool:
        return len(await cluster.ready_pods(app="llm")) == 4

    await eventually(up)


@pytest.mark.looptime
async def test_silent_then_unknown_then_evicted_then_back():
    cluster = Cluster()
    loop = asyncio.get_running_loop()
    async with running(cluster, *control(cluster)):
        await start(cluster, "n1", "n2")
        lost = {name_of(p) for p in await cluster.pods(app="llm") if node_of(p) == "n1"}
        assert len(lost) == 2
        await asyncio.sleep(5)
        assert await taints_of(cluster, "n1") == set()
        cluster.kubelet.alive.discard("n1")
        silent_s = loop.time()

        async def unknown() -> bool:
            return condition_of(await cluster.kube.get(NODE, "n1"), "Ready")["status"] == "Unknown"

        await eventually(unknown, 10)
        # 50 s of grace since the last renewal, which was at most 10 s old, and a monitor pass each 5 s.
        assert 40 / SCALE <= loop.time() - silent_s <= 56 / SCALE
        assert condition_of(await cluster.kube.get(NODE, "n1"), "Ready")["reason"] == "NodeStatusUnknown"

        async def tainted() -> bool:
            return await taints_of(cluster, "n1") == BOTH

        await eventually(tainted, 0.5)
        tainted_s = loop.time()
        pods = [p for p in await cluster.pods(app="llm") if name_of(p) in lost]
        assert [condition_of(p, "Ready")["status"] for p in pods] == ["False", "False"]
        assert not any(map(is_terminating, pods))

        async def evicted() -> bool:
            return all(is_terminating(p) for p in await cluster.pods(app="llm") if name_of(p) in lost)

        await eventually(evicted, 30)
        assert loop.time() - tainted_s == pytest.approx(300 / SCALE, abs=0.1)
        gone = [p for p in await cluster.pods(app="llm") if name_of(p) in lost]
        assert {condition_of(p, "DisruptionTarget")["reason"] for p in gone} == {"DeletionByTaintManager"}
        assert {p["status"]["phase"] for p in gone} == {"Running"}  # nobody is there to end them

        async def replaced() -> bool:
            ready = await cluster.ready_pods(app="llm")
            return len(ready) == 4 and {node_of(p) for p in ready} == {"n2"}

        await eventually(replaced, 10)
        cluster.kubelet.alive.add("n1")
        status = {"conditions": [condition("Ready", "True", lastHeartbeatTime="2026-01-01T01:00:00Z")]}
        await cluster.kube.patch(NODE, "n1", {"status": status}, subresource="status")

        async def clean() -> bool:
            return await taints_of(cluster, "n1") == set()

        await eventually(clean, 6 / SCALE)
        reasons = {e["reason"] for e in (await cluster.kube.list(EVENT)).items}
        assert {"NodeNotReady", "TaintManagerEviction"} <= reasons


@pytest.mark.looptime
async def test_a_node_that_comes_back_in_time_keeps_its_pods():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await start(cluster, "n1", "n2")
        before = {name_of(p) for p in await cluster.pods(app="llm")}
        cluster.kubelet.alive.discard("n1")

        async def tainted() -> bool:
            return await taints_of(cluster, "n1") == BOTH

        await eventually(tainted, 10)
        cluster.kubelet.alive.add("n1")
        status = {"conditions": [condition("Ready", "True", lastHeartbeatTime="2026-01-01T01:00:00Z")]}
        await cluster.kube.patch(NODE, "n1", {"status": status}, subresource="status")
        await asyncio.sleep(2 * 300 / SCALE)
        assert {name_of(p) for p in await cluster.pods(app="llm")} == before
        assert not any(is_terminating(p) for p in await cluster.pods(app="llm"))


@pytest.mark.looptime
async def test_no_eviction_when_all_nodes_are_silent():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await start(cluster, "n1", "n2")
        cluster.kubelet.alive.clear()
        await asyncio.sleep(2 * 300 / SCALE)
        for name in ("n1", "n2"):
            assert await taints_of(cluster, name) == {(UNREACHABLE, "NoSchedule")}
        assert not any(is_terminating(p) for p in await cluster.pods(app="llm"))


@pytest.mark.looptime
async def test_two_of_three_are_given_up_ten_seconds_apart():
    cluster = Cluster()
    loop = asyncio.get_running_loop()
    async with running(cluster, *control(cluster)):
        await start(cluster, "n1", "n2", "n3")
        cluster.kubelet.alive -= {"n1", "n2"}
        at_s: dict[str, float] = {}

        async def both_given_up() -> bool:
            for name in ("n1", "n2"):
                if (UNREACHABLE, "NoExecute") in await taints_of(cluster, name):
                    at_s.setdefault(name, loop.time())
            return len(at_s) == 2

        await eventually(both_given_up, 10)
        assert abs(at_s["n1"] - at_s["n2"]) == pytest.approx(10 / SCALE, abs=0.05)


@pytest.mark.looptime
async def test_a_new_node_is_tainted_until_it_is_ready():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        made = with_ready("False")
        await cluster.kube.create(NODE, made)
        cluster.kubelet.alive.add("n1")

        async def tainted() -> bool:
            return (NOT_READY, "NoSchedule") in await taints_of(cluster, "n1")

        await eventually(tainted, 0.1)
        ready = {"status": {"conditions": [condition("Ready", "True")]}}
        await cluster.kube.patch(NODE, "n1", ready, subresource="status")

        async def clean() -> bool:
            return await taints_of(cluster, "n1") == set()

        await eventually(clean, 6 / SCALE)
