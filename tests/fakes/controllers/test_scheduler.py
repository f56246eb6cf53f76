"""The scheduler on the embedded store."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import pytest
from controller_cluster import (
    NAMESPACE_NAME,
    Cluster,
    deployment,
    eventually,
    pod_group,
    replica_set,
    running,
    template,
)

from fakes.config import PlantedBug
from fakes.controllers.deployment import DeploymentController
from fakes.controllers.objects import condition_of, is_active, name_of, node_of
from fakes.controllers.replicaset import ReplicaSetController
from fakes.controllers.scheduler import Scheduler
from fakes.timing import Timing
from harness.kube.port import DEPLOYMENT, POD, POD_GROUP, REPLICA_SET, ApiError, Json, Kube

pytestmark = pytest.mark.looptime


def control(cluster: Cluster, bugs=(), kube: Kube | None = None):
    return (
        DeploymentController(cluster.kube, cluster.wall, Random(0)).run(),
        ReplicaSetController(cluster.kube, cluster.wall, Random(1)).run(),
        Scheduler(kube or cluster.kube, cluster.wall, Timing(), bugs).run(),
    )


def bound(pods: list[Json]) -> Counter[str]:
    return Counter(node_of(p) for p in pods if is_active(p) and node_of(p))


async def apply_gang(cluster: Cluster, name: str, size: int, **spec) -> None:
    await cluster.kube.create(POD_GROUP, pod_group(name, size), NAMESPACE_NAME)
    member = template(name, schedulingGroup={"podGroupName": name}, **spec)
    await cluster.kube.create(REPLICA_SET, replica_set(name, size, member), NAMESPACE_NAME)


async def test_four_replicas_land_two_and_two():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await cluster.add_node("on-demand-1")
        await cluster.add_node("spot-1")
        await cluster.kube.create(DEPLOYMENT, deployment(), NAMESPACE_NAME)

        async def up() -> bool:
            return len(await cluster.ready_pods(app="llm")) == 4

        await eventually(up)
        assert bound(await cluster.pods(app="llm")) == {"on-demand-1": 2, "spot-1": 2}


async def test_a_pod_waits_with_the_reason_and_binds_when_a_gpu_comes_free():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await cluster.add_node("n1", 2)
        await cluster.kube.create(DEPLOYMENT, deployment(replicas=3), NAMESPACE_NAME)

        async def one_waits() -> bool:
            waiting = [p for p in await cluster.pods(app="llm") if not node_of(p)]
            return len(waiting) == 1 and condition_of(waiting[0], "PodScheduled") is not None

        await eventually(one_waits)
        waiting = next(p for p in await cluster.pods(app="llm") if not node_of(p))
        said = condition_of(waiting, "PodScheduled")
        assert (said["status"], said["reason"]) == ("False", "Unschedulable")
        assert said["message"].startswith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
        await cluster.add_node("n2", 1)

        async def up() -> bool:
            return bound(await cluster.pods(app="llm")) == {"n1": 2, "n2": 1}

        await eventually(up, 1.0)
        now = await cluster.kube.get(POD, name_of(waiting), NAMESPACE_NAME)
        assert condition_of(now, "PodScheduled")["status"] == "True"


async def test_a_terminating_pod_holds_its_gpu_until_it_is_gone():
    cluster = Cluster()
    cluster.kubelet.stop_s = 20.0
    async with running(cluster, *control(cluster)):
        await cluster.add_node("n1", 1)
        await cluster.kube.create(DEPLOYMENT, deployment(replicas=1), NAMESPACE_NAME)

        async def up() -> bool:
            return len(await cluster.ready_pods(app="llm")) == 1

        await eventually(up)
        first = name_of((await cluster.pods(app="llm"))[0])
        await cluster.kube.delete(POD, first, NAMESPACE_NAME)
        seen: list[tuple[int, bool]] = []

        async def replaced() -> bool:
            pods = await cluster.pods(app="llm")
            seen.append((len(pods), any(node_of(p) for p in pods if name_of(p) != first)))
            return (await up()) and len(pods) == 1

        await eventually(replaced, 60)
        assert (2, False) in seen
        assert (2, True) not in seen


async def test_higher_priority_binds_first():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        low = replica_set("low", 2, template("low"))
        high = replica_set("high", 2, template("high", priorityClassName="system-cluster-critical"))
        await cluster.kube.create(REPLICA_SET, low, NAMESPACE_NAME)
        await asyncio.sleep(2)
        await cluster.kube.create(REPLICA_SET, high, NAMESPACE_NAME)
        await asyncio.sleep(1)
        await cluster.add_node("n1", 2)
        await asyncio.sleep(1)
        assert bound(await cluster.pods(app="high")) == {"n1": 2}
        assert not bound(await cluster.pods(app="low"))


async def test_a_gang_waits_whole_holds_nothing_and_then_binds_whole():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await cluster.add_node("n1", 3)
        await apply_gang(cluster, "gang-b", 4)

        async def waits() -> bool:
            pods = await cluster.pods(app="gang-b")
            return len(pods) == 4 and all(condition_of(p, "PodScheduled") for p in pods)

        await eventually(waits)
        assert not bound(await cluster.pods(app="gang-b"))
        group = await cluster.kube.get(POD_GROUP, "gang-b", NAMESPACE_NAME)
        initially = condition_of(group, "PodGroupInitiallyScheduled")
        assert (initially["status"], initially["reason"]) == ("False", "Unschedulable")
        assert initially["message"].startswith("minCount (4) cannot be satisfied: 3 scheduled, 0 remaining, ")

        await cluster.kube.create(DEPLOYMENT, deployment(replicas=2), NAMESPACE_NAME)

        async def others_pass() -> bool:
            return bound(await cluster.pods(app="llm")) == {"n1": 2}

        await eventually(others_pass)
        counts: set[int] = set()

        async def whole() -> bool:
            counts.add(sum(bound(await cluster.pods(app="gang-b")).values()))
            return 4 in counts

        await whole()
        await cluster.add_node("n2", 3)
        await eventually(whole, 2.0)
        group = await cluster.kube.get(POD_GROUP, "gang-b", NAMESPACE_NAME)
        assert condition_of(group, "PodGroupInitiallyScheduled")["status"] == "True"


async def test_a_gang_member_is_replaced_alone_after_its_eviction():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await cluster.add_node("n1", 1)
        await cluster.add_node("n2", 1)
        await apply_gang(cluster, "gang-a", 2)

        async def up() -> bool:
            return len(await cluster.ready_pods(app="gang-a")) == 2

        await eventually(up)
        lost = next(p for p in await cluster.pods(app="gang-a") if node_of(p) == "n1")
        kept = next(p for p in await cluster.pods(app="gang-a") if node_of(p) == "n2")
        await cluster.kube.evict(name_of(lost), NAMESPACE_NAME)

        async def whole() -> bool:
            pods = await cluster.pods(app="gang-a")
            return bound(pods) == {"n1": 1, "n2": 1} and name_of(lost) not in map(name_of, pods)

        await eventually(whole, 30)
        assert name_of(kept) in map(name_of, await cluster.pods(app="gang-a"))


async def test_planted_bug_binds_a_gang_one_by_one():
    cluster = Cluster()
    async with running(cluster, *control(cluster, {PlantedBug.GANG_BOUND_ONE_BY_ONE})):
        await cluster.add_node("n1", 3)
        await apply_gang(cluster, "gang-b", 4)

        async def three() -> bool:
            return sum(bound(await cluster.pods(app="gang-b")).values()) == 3

        await eventually(three)


async def test_pods_of_a_missing_group_wait():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await cluster.add_node("n1", 4)
        member = template("gang-c", schedulingGroup={"podGroupName": "gang-c"})
        await cluster.kube.create(REPLICA_SET, replica_set("gang-c", 2, member), NAMESPACE_NAME)

        await asyncio.sleep(5)
        pods = await cluster.pods(app="gang-c")
        assert [condition_of(p, "PodScheduled") for p in pods] == [None, None]  # nothing is said of it
        await cluster.kube.create(POD_GROUP, pod_group("gang-c", 2), NAMESPACE_NAME)

        async def whole() -> bool:
            return bound(await cluster.pods(app="gang-c")) == {"n1": 2}

        await eventually(whole, 2.0)


class Stumbling:
    """The port, with the first binds and watches failing as a server under stress would make them."""

    def __init__(self, kube: Kube, failures: int) -> None:
        self._kube = kube
        self._left = failures

    def __getattr__(self, name: str):
        return getattr(self._kube, name)

    async def bind(self, name: str, namespace: str, node: str) -> None:
        if self._left > 0:
            self._left -= 1
            raise ApiError(500, "InternalError", "etcdserver: request timed out")
        await self._kube.bind(name, namespace, node)


async def test_failed_binds_are_tried_again():
    cluster = Cluster()
    async with running(cluster, *control(cluster, kube=Stumbling(cluster.kube, 5))):
        await cluster.add_node("n1", 4)
        await cluster.kube.create(DEPLOYMENT, deployment(), NAMESPACE_NAME)

        async def up() -> bool:
            return bound(await cluster.pods(app="llm")) == {"n1": 4}

        await eventually(up, 10)
