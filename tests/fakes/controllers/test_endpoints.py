"""Endpoints of Services: what is said about each pod, and the slices on the embedded store."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from controller_cluster import NAMESPACE_NAME, Cluster, deployment, eventually, pod, running

from fakes.controllers.deployment import DeploymentController
from fakes.controllers.endpoints import belongs, endpoint
from fakes.controllers.endpointslice import EndpointSliceController
from fakes.controllers.objects import name_of
from fakes.controllers.replicaset import ReplicaSetController
from fakes.controllers.scheduler import Scheduler
from fakes.timing import Timing
from harness.kube.port import DEPLOYMENT, ENDPOINT_SLICE, POD, SERVICE, Json


def service(**spec) -> Json:
    return {
        "metadata": {"name": "llm", "namespace": NAMESPACE_NAME, "uid": "uid-llm"},
        "spec": {"selector": {"app": "llm"}, "ports": [{"port": 80, "targetPort": "http"}], **spec},
    }


def state(ready: bool, serving: bool, terminating: bool) -> Json:
    return {"ready": ready, "serving": serving, "terminating": terminating}


@pytest.mark.parametrize(
    ("parts", "spec", "conditions"),
    [
        pytest.param({"ready": True}, {}, state(True, True, False), id="ready"),
        pytest.param({"ready": False}, {}, state(False, False, False), id="unready"),
        pytest.param({"ready": True, "deleted": True}, {}, state(False, True, True), id="terminating-still-serves"),
        pytest.param({"ready": False, "deleted": True}, {}, state(False, False, True), id="terminating-unreachable"),
        pytest.param({}, {"publishNotReadyAddresses": True}, state(True, False, False), id="published-anyway"),
    ],
)
def test_conditions(parts, spec, conditions):
    made = endpoint(pod("p", node="n1", ip="10.244.0.1", **parts), service(**spec), {"n1": "zone-a"})
    assert made == {
        "addresses": ["10.244.0.1"],
        "conditions": conditions,
        "targetRef": {"kind": "Pod", "namespace": NAMESPACE_NAME, "name": "p", "uid": "uid-p"},
        "nodeName": "n1",
        "zone": "zone-a",
    }


def test_who_belongs():
    assert not belongs(pod("no-address", ready=True))
    assert not belongs(pod("ended", ip="10.0.0.1", phase="Succeeded", deleted=True))
    assert belongs(pod("terminating", ip="10.0.0.1", deleted=True))


def control(cluster: Cluster):
    return (
        DeploymentController(cluster.kube, cluster.wall, Random(0)).run(),
        ReplicaSetController(cluster.kube, cluster.wall, Random(1)).run(),
        Scheduler(cluster.kube, cluster.wall, Timing()).run(),
        EndpointSliceController(cluster.kube, cluster.wall).run(),
    )


@pytest.mark.looptime
async def test_an_endpoint_from_its_birth_to_its_end():
    cluster = Cluster()
    cluster.kubelet.stop_s = 10.0
    async with running(cluster, *control(cluster)):
        await cluster.add_node("n1", 8, labels={"topology.kubernetes.io/zone": "zone-a"})
        made = service()
        del made["metadata"]["uid"]
        made["spec"]["ports"] = [{"name": "http", "port": 80, "targetPort": 8000}]
        await cluster.kube.create(SERVICE, made, NAMESPACE_NAME)
        await cluster.kube.create(DEPLOYMENT, deployment(replicas=2), NAMESPACE_NAME)

        async def states() -> dict[str, Json]:
            slices = (await cluster.kube.list(ENDPOINT_SLICE, NAMESPACE_NAME)).items
            assert len(slices) <= 1
            return {e["targetRef"]["name"]: e["conditions"] for s in slices for e in s["endpoints"]}

        async def both() -> bool:
            return [c["ready"] for c in (await states()).values()] == [True, True]

        await eventually(both)
        found = (await cluster.kube.list(ENDPOINT_SLICE, NAMESPACE_NAME)).items[0]
        assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "llm"
        assert found["ports"] == [{"name": "http", "port": 8000, "protocol": "TCP"}]
        victim = name_of((await cluster.pods(app="llm"))[0])
        await cluster.kubelet.set_ready(victim, False)
        await asyncio.sleep(0.05)
        assert (await states())[victim] == state(False, False, False)
        await cluster.kubelet.set_ready(victim, True)
        await cluster.kube.delete(POD, victim, NAMESPACE_NAME)
        await asyncio.sleep(0.05)
        assert (await states())[victim] == state(False, True, True)
        ended = {"status": {"phase": "Succeeded"}}
        await cluster.kube.patch(POD, victim, ended, NAMESPACE_NAME, subresource="status")
        await asyncio.sleep(0.05)
        assert victim not in await states()
        await eventually(both)
