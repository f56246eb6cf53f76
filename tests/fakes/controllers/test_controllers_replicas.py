"""Deployments and ReplicaSets on the embedded store."""

from __future__ import annotations

from random import Random

import pytest
from controller_cluster import NAMESPACE_NAME, Cluster, deployment, eventually, pod, replica_set, running, template

from fakes.controllers.deployment import DeploymentController
from fakes.controllers.objects import condition_of, is_active, is_terminating, name_of
from fakes.controllers.replicas import pods_to_delete
from fakes.controllers.replicaset import ReplicaSetController
from fakes.controllers.rollout import Room, SetState, new_set_size, old_set_sizes, proportional_sizes, room_of
from fakes.controllers.scheduler import Scheduler
from fakes.timing import Timing
from harness.kube.port import DEPLOYMENT, EVENT, POD, REPLICA_SET


@pytest.mark.parametrize(
    ("spec", "room"),
    [
        pytest.param({}, Room(1, 1), id="default-25-percent-of-4"),
        pytest.param({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}, Room(0, 1), id="never-both-zero"),
        pytest.param({"rollingUpdate": {"maxSurge": "30%", "maxUnavailable": "30%"}}, Room(2, 1), id="up-and-down"),
        pytest.param({"type": "Recreate"}, Room(0, 0), id="recreate"),
    ],
)
def test_room(spec, room):
    assert room_of(deployment(strategy={"type": "RollingUpdate", **spec})) == room


@pytest.mark.parametrize(
    ("new", "old", "size"),
    [
        pytest.param(0, 4, 1, id="surge-first"),
        pytest.param(1, 3, 2, id="as-old-ones-go"),
        pytest.param(2, 3, 2, id="no-room"),
        pytest.param(6, 0, 4, id="scaled-down"),
    ],
)
def test_new_set_size(new, old, size):
    states = SetState("new", new, new, new), [SetState("old", old, old, old)]
    assert new_set_size(4, *states, Room(1, 1)) == size


@pytest.mark.parametrize(
    ("new", "old", "size"),
    [
        pytest.param((1, 0), (4, 4), 3, id="unready-new-pod-does-not-replace"),
        pytest.param((1, 1), (4, 4), 2, id="a-ready-one-does"),
        pytest.param((1, 0), (4, 2), 3, id="unhealthy-old-ones-go-first"),
        pytest.param((2, 0), (3, 3), 3, id="at-the-floor"),
    ],
)
def test_old_set_sizes(new, old, size):
    states = SetState("new", new[0], new[0], new[1]), [SetState("old", old[0], old[0], old[1])]
    assert old_set_sizes(4, *states, Room(1, 1)) == {"old": size}


def test_a_deployment_scaled_during_a_rollout_shares_the_difference_by_size():
    states = [SetState("a", 8, 8, 8), SetState("b", 2, 2, 2)]
    assert proportional_sizes(states, 20, 10) == {"a": 16, "b": 4}
    assert proportional_sizes(states, 5, 10) == {"a": 4, "b": 1}
    assert sum(proportional_sizes(states, 13, 10).values()) == 13


def test_scale_down_takes_the_pods_that_serve_least():
    pods = [
        pod("old-ready", node="n1", ready=True),
        pod("ready-crowded", node="n2", ready=True),
        pod("ready-crowded-2", node="n2", ready=True, created="2026-01-01T00:05:00Z"),
        pod("unready", node="n1", ready=False),
        pod("pending-bound", node="n1", phase="Pending"),
        pod("unbound", phase="Pending"),
    ]
    order = [name_of(p) for p in pods_to_delete(pods, 6)]
    assert order[:3] == ["unbound", "pending-bound", "unready"]
    assert pods_to_delete(pods, 0) == []
    cheap = pod("cheap", node="n1", ready=True)
    cheap["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": "-10"}
    assert name_of(pods_to_delete([pods[0], cheap], 1)[0]) == "cheap"


def control(cluster: Cluster):
    return (
        DeploymentController(cluster.kube, cluster.wall, Random(0)).run(),
        ReplicaSetController(cluster.kube, cluster.wall, Random(1)).run(),
        Scheduler(cluster.kube, cluster.wall, Timing()).run(),
    )


async def rolled_out(cluster: Cluster, replicas: int) -> bool:
    status = (await cluster.kube.get(DEPLOYMENT, "llm", NAMESPACE_NAME)).get("status") or {}
    return {status.get(field, 0) for field in ("availableReplicas", "updatedReplicas", "replicas")} == {replicas}


@pytest.mark.looptime
async def test_a_deployment_comes_up_and_says_so():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await cluster.add_node("n1")
        await cluster.kube.create(DEPLOYMENT, deployment(replicas=3), NAMESPACE_NAME)
        await eventually(lambda: rolled_out(cluster, 3))
        found = await cluster.kube.get(DEPLOYMENT, "llm", NAMESPACE_NAME)
        assert condition_of(found, "Available")["reason"] == "MinimumReplicasAvailable"
        assert condition_of(found, "Progressing")["reason"] == "NewReplicaSetAvailable"
        assert "unavailableReplicas" not in found["status"] or found["status"]["unavailableReplicas"] == 0
        sets = (await cluster.kube.list(REPLICA_SET, NAMESPACE_NAME)).items
        assert len(sets) == 1
        hash = sets[0]["metadata"]["labels"]["pod-template-hash"]
        assert name_of(sets[0]) == f"llm-{hash}"
        assert {name_of(p).rsplit("-", 1)[0] for p in await cluster.pods(app="llm")} == {f"llm-{hash}"}


@pytest.mark.looptime
async def test_a_new_template_rolls_within_surge_and_unavailable():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await cluster.add_node("n1", 8)
        await cluster.kube.create(DEPLOYMENT, deployment(), NAMESPACE_NAME)
        await eventually(lambda: rolled_out(cluster, 4))
        changed = template("llm", terminationGracePeriodSeconds=60)
        await cluster.kube.patch(DEPLOYMENT, "llm", {"spec": {"template": changed}}, NAMESPACE_NAME)
        seen_active, seen_ready = [], []

        async def finished() -> bool:
            pods = await cluster.pods(app="llm")
            seen_active.append(sum(is_active(p) for p in pods))
            seen_ready.append(len(await cluster.ready_pods(app="llm")))
            if not await rolled_out(cluster, 4):
                return False
            return {p["spec"]["terminationGracePeriodSeconds"] for p in pods if is_active(p)} == {60}

        await eventually(finished, 60)
        assert max(seen_active) <= 5
        assert min(seen_ready) >= 3
        sets = (await cluster.kube.list(REPLICA_SET, NAMESPACE_NAME)).items
        assert sorted(s["spec"]["replicas"] for s in sets) == [0, 4]


@pytest.mark.looptime
async def test_a_terminating_pod_is_replaced_at_once_and_never_twice():
    cluster = Cluster()
    cluster.kubelet.stop_s = 10.0
    async with running(cluster, *control(cluster)):
        await cluster.add_node("n1", 8)
        await cluster.kube.create(REPLICA_SET, replica_set("set", 2, template("set")), NAMESPACE_NAME)

        async def up() -> bool:
            return len(await cluster.ready_pods(app="set")) == 2

        await eventually(up)
        victim = name_of((await cluster.pods(app="set"))[0])
        await cluster.kube.delete(POD, victim, NAMESPACE_NAME)
        await eventually(up, 5.0)  # long before the old one is gone
        pods = await cluster.pods(app="set")
        assert [name_of(p) for p in pods if is_terminating(p)] == [victim]
        assert len(pods) == 3
        await cluster.kube.patch(REPLICA_SET, "set", {"spec": {"replicas": 1}}, NAMESPACE_NAME)

        async def down() -> bool:
            return len(await cluster.pods(app="set")) == 1

        await eventually(down, 60)
        status = (await cluster.kube.get(REPLICA_SET, "set", NAMESPACE_NAME))["status"]
        assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (1, 1, 1)
        events = (await cluster.kube.list(EVENT, NAMESPACE_NAME)).items
        assert sum(e["reason"] == "SuccessfulCreate" for e in events) == 3


@pytest.mark.looptime
async def test_scaling_a_deployment_moves_its_one_set():
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await cluster.add_node("n1", 8)
        await cluster.kube.create(DEPLOYMENT, deployment(replicas=2), NAMESPACE_NAME)
        await eventually(lambda: rolled_out(cluster, 2))
        await cluster.scale("llm", 5)
        await eventually(lambda: rolled_out(cluster, 5))
        await cluster.scale("llm", 0)
        await eventually(lambda: rolled_out(cluster, 0))
        await cluster.scale("llm", 1)
        await eventually(lambda: rolled_out(cluster, 1))
        assert len((await cluster.kube.list(REPLICA_SET, NAMESPACE_NAME)).items) == 1
