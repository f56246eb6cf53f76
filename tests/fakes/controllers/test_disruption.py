"""Disruption budgets: the arithmetic, and evictions against the embedded store."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from controller_cluster import NAMESPACE_NAME, Cluster, deployment, eventually, pdb, pod, running

from fakes.clock import stamp
from fakes.controllers.budget import Need, Selected, is_healthy, need_of, next_status, still_disrupted
from fakes.controllers.deployment import DeploymentController
from fakes.controllers.disruption import DisruptionController
from fakes.controllers.objects import condition_of, is_ready, is_terminating, name_of
from fakes.controllers.replicaset import ReplicaSetController
from fakes.controllers.scheduler import Scheduler
from fakes.kube.kinds import CUSTOM_RESOURCE_DEFINITION
from fakes.timing import Timing
from harness.kube.port import (
    DEPLOYMENT,
    LEADER_WORKER_SET,
    NODE,
    PDB,
    POD,
    STATEFUL_SET,
    Json,
    Resource,
    TooManyRequests,
)

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("spec", "pods", "scale", "need"),
    [
        pytest.param({"maxUnavailable": "25%"}, 7, 7, Need(7, 5), id="max-percent-rounds-up"),
        pytest.param({"maxUnavailable": "25%"}, 9, 7, Need(7, 5), id="of-the-scale-not-of-the-pods"),
        pytest.param({"maxUnavailable": 1}, 4, 4, Need(4, 3), id="max-number"),
        pytest.param({"maxUnavailable": 9}, 4, 4, Need(4, 0), id="more-than-there-are"),
        pytest.param({"minAvailable": "50%"}, 7, 7, Need(7, 4), id="min-percent-rounds-up"),
        pytest.param({"minAvailable": 2}, 3, 7, Need(3, 2), id="min-number-of-the-pods"),
        pytest.param({}, 3, 3, Need(0, 0), id="neither-lets-nobody-go"),
    ],
)
def test_need(spec, pods, scale, need):
    assert need_of(pdb(**spec), pods, scale) == need


def test_who_counts_as_healthy():
    pods = [
        pod("ready", ready=True),
        pod("unready", ready=False),
        pod("terminating", ready=True, deleted=True),
        pod("evicted", ready=True),
    ]
    selected = Selected(4, sum(map(is_healthy, pods)), [p for p in pods if name_of(p) == "evicted"])
    assert selected.healthy_but({"evicted": stamp(NOW)}) == 1


def test_an_admitted_eviction_counts_until_the_pod_shows_it():
    pods = [pod("seen", ready=True, deleted=True), pod("unseen", ready=True), pod("stale", ready=True)]
    recent, old = stamp(NOW), stamp(NOW - timedelta(minutes=3))
    noted = {"seen": recent, "unseen": recent, "stale": old, "gone": recent}
    assert still_disrupted(pods, noted, NOW) == {"unseen": recent}


def test_a_status_like_the_real_one():
    budget = pdb(minAvailable=2)
    budget["metadata"]["generation"] = 1
    status = next_status(budget, Selected(2, 2), 2, NOW, "t")
    assert status == {
        "observedGeneration": 1,
        "disruptionsAllowed": 0,
        "currentHealthy": 2,
        "desiredHealthy": 2,
        "expectedPods": 2,
        "conditions": [
            {
                "type": "DisruptionAllowed",
                "status": "False",
                "reason": "InsufficientPods",
                "message": "",
                "observedGeneration": 1,
                "lastTransitionTime": "t",
            }
        ],
    }


def test_a_budget_without_pods_allows_nothing():
    assert next_status(pdb(maxUnavailable=1), Selected(0, 0), 0, NOW, "t")["disruptionsAllowed"] == 0


def control(cluster: Cluster):
    return (
        DeploymentController(cluster.kube, cluster.wall, Random(0)).run(),
        ReplicaSetController(cluster.kube, cluster.wall, Random(1)).run(),
        Scheduler(cluster.kube, cluster.wall, Timing()).run(),
        DisruptionController(cluster.kube, cluster.wall).run(),
    )


async def start(cluster: Cluster, replicas: int) -> None:
    await cluster.add_node("n1", 16)
    await cluster.kube.create(DEPLOYMENT, deployment(replicas=replicas), NAMESPACE_NAME)
    await cluster.kube.create(PDB, pdb(maxUnavailable="25%"), NAMESPACE_NAME)
    await eventually(lambda: all_ready(cluster, replicas))
    await eventually(lambda: allowed(cluster, 2))


async def all_ready(cluster: Cluster, count: int) -> bool:
    return len(await cluster.ready_pods(app="llm")) == count


async def status_of(cluster: Cluster) -> Json:
    return (await cluster.kube.get(PDB, "llm", NAMESPACE_NAME)).get("status") or {}


async def allowed(cluster: Cluster, count: int) -> bool:
    return (await status_of(cluster)).get("disruptionsAllowed") == count


@pytest.mark.looptime
async def test_two_evictions_pass_the_third_waits_for_a_replacement():
    cluster = Cluster()
    cluster.kubelet.stop_s = 30.0
    async with running(cluster, *control(cluster)):
        await start(cluster, 7)
        assert (await status_of(cluster))["desiredHealthy"] == 5
        cluster.kubelet.hold_ready = True
        victims = [name_of(p) for p in (await cluster.ready_pods(app="llm"))[:3]]
        await cluster.kube.evict(victims[0], NAMESPACE_NAME)
        await cluster.kube.evict(victims[1], NAMESPACE_NAME)
        for _ in range(20):  # the controller's own writes in between must not lend more
            with pytest.raises(TooManyRequests) as refused:
                await cluster.kube.evict(victims[2], NAMESPACE_NAME)
            assert "needs 5 healthy pods and has 5" in str(refused.value.body) or await allowed(cluster, 0)
            await asyncio.sleep(0.05)
        await eventually(lambda: allowed(cluster, 0))
        status = await status_of(cluster)
        assert (status["currentHealthy"], status["expectedPods"]) == (5, 7)
        assert not status.get("disruptedPods")
        cluster.kubelet.hold_ready = False
        await eventually(lambda: allowed(cluster, 2), 10)
        await cluster.kube.evict(victims[2], NAMESPACE_NAME)
        pods = {name_of(p): p for p in await cluster.pods(app="llm")}
        assert is_terminating(pods[victims[2]])


@pytest.mark.looptime
@pytest.mark.parametrize("seed", range(5))
async def test_concurrent_evictions_never_overdraw(seed):
    cluster = Cluster()
    cluster.kubelet.stop_s = 3.0
    rng = Random(seed)
    async with running(cluster, *control(cluster)):
        await start(cluster, 7)
        tally = {"admitted": 0, "refused": 0}

        async def drain() -> None:
            for _ in range(60):
                pods = [p for p in await cluster.pods(app="llm") if is_ready(p) and not is_terminating(p)]
                if pods:
                    try:
                        await cluster.kube.evict(name_of(rng.choice(pods)), NAMESPACE_NAME)
                        tally["admitted"] += 1
                    except TooManyRequests:
                        tally["refused"] += 1
                healthy = len(await cluster.ready_pods(app="llm"))
                assert healthy >= 5, "the budget was overdrawn"
                await asyncio.sleep(rng.random() * 0.1)

        await asyncio.gather(*(drain() for _ in range(4)))
        assert tally["admitted"] >= 4
        assert tally["refused"] >= 4


@pytest.mark.looptime
async def test_the_need_follows_the_scale():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await start(cluster, 7)
        await cluster.scale("llm", 4)

        async def followed() -> bool:
            status = await status_of(cluster)
            return (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (4, 3, 1)

        await eventually(followed)


CRD: Json = {
    "metadata": {"name": "fleets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "fleets", "singular": "fleet", "kind": "Fleet", "listKind": "FleetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
                "subresources": {
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
            }
        ],
    },
}
FLEET = Resource("example.com", "v1", "fleets", "Fleet", True)


async def status_of_budget(cluster: Cluster, owner: Json) -> Json:
    """Of maxUnavailable 25 % over one pod of that owner."""
    pod = {"metadata": {"name": "p", "labels": {"app": "llm"}, "ownerReferences": [owner]}, **POD_SPEC}
    await cluster.kube.create(POD, pod, NAMESPACE_NAME)
    spec = {"maxUnavailable": "25%", "selector": {"matchLabels": {"app": "llm"}}}
    await cluster.kube.create(PDB, {"metadata": {"name": "b"}, "spec": spec}, NAMESPACE_NAME)
    await asyncio.sleep(1.0)
    return (await cluster.kube.get(PDB, "b", NAMESPACE_NAME))["status"]


POD_SPEC: Json = {"spec": {"containers": [{"name": "c", "image": "i"}]}}


def owned_by(resource: Resource, name: str, uid: str) -> Json:
    who = {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "uid": uid}
    return who | {"controller": True, "blockOwnerDeletion": True}


@pytest.mark.looptime
@pytest.mark.parametrize("resource", [STATEFUL_SET, FLEET, LEADER_WORKER_SET], ids=lambda r: r.kind)
async def test_the_scale_of_whatever_owns_the_pods(resource: Resource) -> None:
    cluster = Cluster()
    template = {"metadata": {"labels": {"app": "llm"}}, **POD_SPEC}
    spec = {"replicas": 8, "size": 8, "selector": {"matchLabels": {"app": "llm"}}, "template": template}
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "s"}, "spec": spec}
    async with running(cluster, DisruptionController(cluster.kube, cluster.wall).run()):
        await cluster.kube.create(CUSTOM_RESOURCE_DEFINITION, CRD)
        made = await cluster.kube.create(resource, body, NAMESPACE_NAME)
        status = await status_of_budget(cluster, owned_by(resource, "s", made["metadata"]["uid"]))
        assert (status["expectedPods"], status["desiredHealthy"]) == (8, 6)


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("owner", "why"),
    [
        (owned_by(STATEFUL_SET, "gone", "u"), 'found no controllers for pod "p"'),
        (owned_by(NODE, "n", "u"), "nodes does not implement the scale subresource"),
        (
            owned_by(Resource("x.io", "v1", "xs", "X", True), "n", "u"),
            'no matches for kind "X" in version "x.io/v1"',
        ),
    ],
)
async def test_a_budget_says_whose_scale_it_cannot_tell(owner: Json, why: str) -> None:
    cluster = Cluster()
    async with running(cluster, DisruptionController(cluster.kube, cluster.wall).run()):
        status = await status_of_budget(cluster, owner)
        told = condition_of({"status": status}, "DisruptionAllowed")
        assert told is not None
        assert (told["status"], told["reason"], told["message"]) == ("False", "SyncFailed", why)
        assert status.get("disruptionsAllowed", 0) == 0
