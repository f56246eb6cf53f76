"""Binding and eviction, against the answers of a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from fakes.kube import LocalKube
from harness.kube import port
from harness.kube.port import Json

pytestmark = pytest.mark.looptime

# Captured from a real API server (1.37): a refused eviction.
REFUSED: Json = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "Cannot evict pod as it would violate the pod's disruption budget.",
    "reason": "TooManyRequests",
    "details": {
        "causes": [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget dep needs 2 healthy pods and has 2 currently",
            }
        ]
    },
    "code": 429,
}


async def running_pod(kube: LocalKube, name: str = "p", *, ready: bool = True, phase: str = "Running") -> Json:
    body = {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "dep"}},
        "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 2, "containers": [{"name": "c", "image": "x:1"}]},
    }
    await kube.create(port.POD, body)
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    patch = {"status": {"phase": phase, "conditions": conditions}}
    return await kube.patch(port.POD, name, patch, "default", subresource="status")


async def budget(kube: LocalKube, name: str = "dep", *, allowed: int = 0, healthy: int = 2, **spec: Any) -> None:
    selector = {"matchLabels": {"app": "dep"}}
    body = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": selector, **spec},
    }
    await kube.create(port.PDB, body)
    status = {
        "observedGeneration": 1,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": 2,
        "expectedPods": 2,
    }
    await kube.patch(port.PDB, name, {"status": status}, "default", subresource="status")


async def test_a_refused_eviction_answers_as_a_real_server(kube: LocalKube) -> None:
    await running_pod(kube)
    await budget(kube)
    with pytest.raises(port.TooManyRequests) as refused:
        await kube.evict("p", "default")
    assert refused.value.body == REFUSED
    assert "deletionTimestamp" not in (await kube.get(port.POD, "p", "default"))["metadata"]


async def test_an_admitted_eviction_spends_the_budget_and_marks_the_pod(kube: LocalKube) -> None:
    await running_pod(kube)
    await budget(kube, allowed=1)
    await kube.evict("p", "default")
    status = (await kube.get(port.PDB, "dep", "default"))["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["p"])
    evicted = await kube.get(port.POD, "p", "default")
    assert (evicted["metadata"]["deletionGracePeriodSeconds"], evicted["metadata"]["generation"]) == (2, 2)
    target = evicted["status"]["conditions"][-1]
    assert (target["type"], target["reason"]) == ("DisruptionTarget", "EvictionByEvictionAPI")
    await kube.evict("p", "default")  # it is on its way already: no budget is asked
    assert (await kube.get(port.PDB, "dep", "default"))["status"]["disruptionsAllowed"] == 0


async def test_a_budget_not_yet_processed_refuses_with_a_time(kube: LocalKube) -> None:
    await running_pod(kube)
    await budget(kube, allowed=1)
    await kube.patch(port.PDB, "dep", {"spec": {"minAvailable": 1}}, "default")
    with pytest.raises(port.TooManyRequests) as refused:
        await kube.evict("p", "default")
    assert refused.value.body["details"]["retryAfterSeconds"] == 10
    cause = refused.value.body["details"]["causes"][0]["message"]
    assert cause == "The disruption budget dep is still being processed by the server."


async def test_two_budgets_are_a_server_error(kube: LocalKube) -> None:
    await running_pod(kube)
    await budget(kube, "one", allowed=1)
    await budget(kube, "two", allowed=1)
    with pytest.raises(port.ApiError) as refused:
        await kube.evict("p", "default")
    assert refused.value.status == 500
    assert "more than one PodDisruptionBudget" in refused.value.message


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
async def test_pods_that_serve_nobody_need_no_budget(kube: LocalKube, phase: str) -> None:
    await running_pod(kube, phase=phase)
    await budget(kube)
    await kube.evict("p", "default")


@pytest.mark.parametrize(
    ("healthy", "policy", "evicted"),
    [(2, {}, True), (1, {}, False), (1, {"unhealthyPodEvictionPolicy": "AlwaysAllow"}, True)],
)
async def test_unready_pods(kube: LocalKube, healthy: int, policy: dict[str, Any], evicted: bool) -> None:
    await running_pod(kube, ready=False)
    await budget(kube, healthy=healthy, **policy)
    if evicted:
        await kube.evict("p", "default")
    else:
        with pytest.raises(port.TooManyRequests):
            await kube.evict("p", "default")


async def test_the_grace_of_an_eviction(kube: LocalKube) -> None:
    await running_pod(kube)
    await kube.evict("p", "default", grace_s=60)
    assert (await kube.get(port.POD, "p", "default"))["metadata"]["deletionGracePeriodSeconds"] == 60
    with pytest.raises(port.NotFound):
        await kube.evict("missing", "default")


async def test_binding(kube: LocalKube) -> None:
    body = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    await kube.create(port.POD, body)
    await kube.bind("p", "default", "n1")
    bound = await kube.get(port.POD, "p", "default")
    assert (bound["spec"]["nodeName"], bound["metadata"]["generation"]) == ("n1", 1)
    assert [(c["type"], c["status"]) for c in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    with pytest.raises(port.Conflict) as twice:
        await kube.bind("p", "default", "n2")
    assert (
        twice.value.message
        == 'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"'
    )
