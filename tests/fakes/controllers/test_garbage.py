"""What is removed when its owner, or its node, is gone."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from controller_cluster import NAMESPACE_NAME, Cluster, deployment, eventually, replica_set, running, template

from fakes.controllers.deployment import DeploymentController
from fakes.controllers.garbage import GarbageCollector
from fakes.controllers.objects import condition_of, is_ready, name_of, node_of
from fakes.controllers.replicaset import ReplicaSetController
from fakes.controllers.scheduler import Scheduler
from fakes.kube.api import Api
from fakes.kube.delete_options import DeleteOptions
from fakes.timing import Timing
from harness.kube.port import DEPLOYMENT, NODE, POD, REPLICA_SET, EventType, NotFound, Resource

pytestmark = pytest.mark.looptime
SCALE = 15.0


def control(cluster: Cluster):
    timing = Timing(SCALE)
    return (
        DeploymentController(cluster.kube, cluster.wall, Random(0)).run(),
        ReplicaSetController(cluster.kube, cluster.wall, Random(1)).run(),
        Scheduler(cluster.kube, cluster.wall, timing).run(),
        GarbageCollector(cluster.kube, cluster.wall, timing).run(),
    )


async def start(cluster: Cluster) -> None:
    await cluster.add_node("n1", 8)
    await cluster.kube.create(DEPLOYMENT, deployment(replicas=2), NAMESPACE_NAME)

    async def up() -> bool:
        return len(await cluster.ready_pods(app="llm")) == 2

    await eventually(up)


async def left(cluster: Cluster) -> tuple[int, int, int]:
    found = [len((await cluster.kube.list(r, NAMESPACE_NAME)).items) for r in (DEPLOYMENT, REPLICA_SET, POD)]
    return found[0], found[1], found[2]


def delete_as(cluster: Cluster, resource: Resource, name: str, propagation: str) -> None:
    """The port has no propagationPolicy; a client over HTTP does."""
    api = Api(cluster.store)
    api.deleter.delete(resource, api.get(resource, NAMESPACE_NAME, name), DeleteOptions(propagation=propagation))


async def test_deleting_a_deployment_takes_everything_below():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await start(cluster)
        await cluster.kube.delete(DEPLOYMENT, "llm", NAMESPACE_NAME)

        async def gone() -> bool:
            return await left(cluster) == (0, 0, 0)

        await eventually(gone)


async def test_foreground_waits_for_the_dependents():
    cluster = Cluster()
    cluster.kubelet.stop_s = 5.0
    async with running(cluster, *control(cluster)):
        await start(cluster)
        delete_as(cluster, DEPLOYMENT, "llm", "Foreground")
        await asyncio.sleep(0.5)
        assert (await left(cluster))[0] == 1

        async def gone() -> bool:
            return await left(cluster) == (0, 0, 0)

        await eventually(gone)


async def test_orphans_are_left_behind_and_adopted():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await cluster.add_node("n1", 8)
        await cluster.kube.create(REPLICA_SET, replica_set("set", 2, template("set")), NAMESPACE_NAME)

        async def up() -> bool:
            return len(await cluster.ready_pods(app="set")) == 2

        await eventually(up)
        before = {name_of(p) for p in await cluster.pods(app="set")}
        delete_as(cluster, REPLICA_SET, "set", "Orphan")

        async def orphaned() -> bool:
            return not (await cluster.kube.list(REPLICA_SET, NAMESPACE_NAME)).items

        await eventually(orphaned)
        pods = await cluster.pods(app="set")
        assert {name_of(p) for p in pods} == before
        assert not any(p["metadata"].get("ownerReferences") for p in pods)
        await cluster.kube.create(REPLICA_SET, replica_set("again", 2, template("set")), NAMESPACE_NAME)

        async def adopted() -> bool:
            owners = [p["metadata"].get("ownerReferences") or [{}] for p in await cluster.pods(app="set")]
            return [o[0].get("name") for o in owners] == ["again", "again"]

        await eventually(adopted)
        assert {name_of(p) for p in await cluster.pods(app="set")} == before


async def test_an_owner_that_never_was_takes_its_dependent_along():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        stray = replica_set("stray", 0, template("stray"))
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm", "uid": "no-such-uid", "controller": True}
        stray["metadata"]["ownerReferences"] = [owner]
        await cluster.kube.create(REPLICA_SET, stray, NAMESPACE_NAME)

        async def gone() -> bool:
            return not (await cluster.kube.list(REPLICA_SET, NAMESPACE_NAME)).items

        await eventually(gone)


async def test_pods_of_a_vanished_node_are_removed_after_the_quarantine():
    cluster = Cluster()
    loop = asyncio.get_running_loop()
    async with running(cluster, *control(cluster)):
        await start(cluster)
        await cluster.add_node("n2", 8)
        cluster.kubelet.alive.discard("n1")
        listed = await cluster.kube.list(POD, NAMESPACE_NAME)
        lost = {name_of(p) for p in listed.items}
        await cluster.kube.delete(NODE, "n1")
        gone_s = loop.time()
        last = {}

        async def follow() -> None:
            async for event in cluster.kube.watch(POD, NAMESPACE_NAME, resource_version=listed.resource_version):
                if event.type is EventType.DELETED:
                    last[name_of(event.object)] = event.object

        following = asyncio.create_task(follow())

        async def removed() -> bool:
            return lost <= set(last)

        await eventually(removed, 10)
        following.cancel()
        assert 40 / SCALE <= loop.time() - gone_s <= 61 / SCALE
        for name in lost:
            assert condition_of(last[name], "DisruptionTarget")["reason"] == "DeletionByPodGC"
            assert last[name]["status"]["phase"] == "Failed"

        async def replaced() -> bool:
            pods = await cluster.pods(app="llm")
            return len(pods) == 2 and all(is_ready(p) and node_of(p) == "n2" for p in pods)

        await eventually(replaced)
        with pytest.raises(NotFound):
            await cluster.kube.get(POD, next(iter(lost)), NAMESPACE_NAME)
