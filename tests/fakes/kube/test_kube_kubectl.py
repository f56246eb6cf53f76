"""kubectl, unmodified, against the embedded server."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fakes.nodes.usage import ContainerUse
from harness.kube import port
from harness.kube.port import Json

if TYPE_CHECKING:
    from conftest import Served

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")

SERVED = (Path(__file__).parents[2] / "manifests" / "llm.yaml").read_text()
"""A Deployment with its budget and autoscaler."""
MANIFEST = f"""{SERVED}---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {{name: gang-a}}
spec: {{schedulingPolicy: {{gang: {{minCount: 2}}}}}}
"""

Kubectl = Callable[..., Awaitable[str]]


@pytest.fixture
async def kubectl(served: Served, tmp_path: Path) -> Kubectl:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(served.kubeconfig)}

    async def run(*arguments: str, stdin: str = "", fails: bool = False) -> str:
        process = await asyncio.create_subprocess_exec(
            "kubectl",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
        )
        try:
            async with asyncio.timeout(30):
                out, _ = await process.communicate(stdin.encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        text = out.decode()
        assert (process.returncode != 0) is fails, f"kubectl {' '.join(arguments)}: {text}"
        return text

    return run


async def add_node(served: Served) -> None:
    ready = [{"type": "Ready", "status": "True"}]
    status: Json = {"conditions": ready, "capacity": {"nvidia.com/gpu": "4"}, "nodeInfo": {"kubeletVersion": "v1.37.2"}}
    await served.kube.create(port.NODE, {"metadata": {"name": "n1"}, "status": status})


async def add_running_pod(served: Served, name: str) -> None:
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "x:1"}]}
    await served.kube.create(port.POD, {"metadata": {"name": name, "labels": {"app": "llm"}}, "spec": spec}, "default")
    status: Json = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "c", "ready": True, "restartCount": 0, "state": {"running": {}}}],
    }
    await served.kube.patch(port.POD, name, {"status": status}, "default", subresource="status")


async def allow(served: Served, disruptions: int) -> None:
    status = {"observedGeneration": 1, "disruptionsAllowed": disruptions, "currentHealthy": 2, "desiredHealthy": 1}
    await served.kube.patch(port.PDB, "llm", {"status": status}, "default", subresource="status")


async def test_apply_and_get(served: Served, kubectl: Kubectl) -> None:
    applied = await kubectl("apply", "-f", "-", stdin=MANIFEST)
    assert applied.count("created") == 4
    revision = served.store.revision
    await kubectl("apply", "-f", "-", stdin=MANIFEST)
    assert served.store.revision == revision, "a second apply changes nothing"
    await add_node(served)
    await add_running_pod(served, "llm-0")
    shown = await kubectl("get", "nodes,pods,deploy,hpa,pdb,podgroups")
    for words in (
        "node/n1   Ready    <none>",
        "pod/llm-0   1/1     Running   0",
        "deployment.apps/llm   0/2",
        "Deployment/llm   <unknown>/2   2         7",
        "poddisruptionbudget.policy/llm   N/A             25%               0",
        "podgroup.scheduling.k8s.io/gang-a   Gang",
    ):
        assert words in shown, shown
    assert "n1" in await kubectl("get", "pods", "-o", "wide")
    assert "vllm/vllm-openai:v0.32.0" in await kubectl("get", "deploy,rs,svc,events,nodeclaims", "-o", "wide")
    assert json.loads(await kubectl("get", "deploy", "llm", "-o", "json"))["spec"]["replicas"] == 2
    assert await kubectl("get", "pod", "llm-0", "-o", "jsonpath={.spec.nodeName}") == "n1"
    missing = await kubectl("get", "pod", "none", fails=True)
    assert missing.strip() == 'Error from server (NotFound): pods "none" not found'


async def test_changes(served: Served, kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=MANIFEST)
    await kubectl("apply", "-f", "-", stdin=MANIFEST.replace("replicas: 2", "replicas: 3"))
    assert await kubectl("get", "deploy", "llm", "-o", "jsonpath={.spec.replicas}") == "3"
    await kubectl("scale", "deploy", "llm", "--replicas=5")
    assert await kubectl("get", "deploy", "llm", "-o", "jsonpath={.spec.replicas}") == "5"
    await add_node(served)
    await kubectl("label", "node", "n1", "a=b")
    await kubectl("annotate", "node", "n1", "c=d")
    for taint in ("k=v:NoSchedule", "l=v:NoSchedule", "k-"):
        await kubectl("taint", "node", "n1", taint)
    await kubectl("cordon", "n1")
    node = await served.kube.get(port.NODE, "n1")
    assert (node["metadata"]["labels"], node["metadata"]["annotations"]) == ({"a": "b"}, {"c": "d"})
    assert [t["key"] for t in node["spec"]["taints"]] == ["l"]
    assert "Ready,SchedulingDisabled" in await kubectl("get", "nodes")
    await kubectl("uncordon", "n1")
    await kubectl("patch", "deploy", "llm", "-p", '{"spec":{"template":{"metadata":{"annotations":{"x":"y"}}}}}')
    await kubectl("rollout", "restart", "deploy", "llm")
    await kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=MANIFEST)
    refused = await kubectl("patch", "deploy", "llm", "--type=merge", "-p", '{"spec":{"replicas":-1}}', fails=True)
    assert "must be greater than or equal to 0" in refused
    await kubectl("delete", "deploy,pdb,hpa,podgroup", "--all")
    assert not (await served.kube.list(port.DEPLOYMENT)).items


async def test_kinds_that_kubectl_sends_as_protobuf(kubectl: Kubectl) -> None:
    await kubectl("create", "namespace", "team")
    await kubectl("create", "configmap", "c", "--from-literal=a=b", "-n", "team")
    await kubectl("create", "deployment", "d", "--image=nginx:1", "--replicas=3", "-n", "team")
    assert await kubectl("get", "cm", "c", "-n", "team", "-o", "jsonpath={.data.a}") == "b"
    assert await kubectl("get", "deploy", "d", "-n", "team", "-o", "jsonpath={.spec.replicas}") == "3"
    assert (await kubectl("auth", "can-i", "create", "pods")).strip() == "yes"
    assert 'namespace "team" deleted' in await kubectl("delete", "namespace", "team", "--wait=false")
    assert "Terminating" in await kubectl("get", "namespace", "team")


async def test_describe_wait_and_api_resources(served: Served, kubectl: Kubectl) -> None:
    await add_node(served)
    await add_running_pod(served, "p")
    uid = (await served.kube.get(port.POD, "p", "default"))["metadata"]["uid"]
    event = {
        "metadata": {"name": "p.1", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default", "uid": uid},
        "reason": "Pulled",
        "message": "image is here",
        "type": "Normal",
        "lastTimestamp": served.store.wall.stamp(),
        "count": 2,
    }
    await served.kube.create(port.EVENT, event)
    assert "image is here" in await kubectl("describe", "pod", "p")
    assert "nvidia.com/gpu" in await kubectl("describe", "node", "n1")
    assert "Pulled" in await kubectl("get", "events")
    assert "condition met" in await kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=5s")
    assert "nodeclaims" in await kubectl("api-resources")
    assert "does not serve pods/log" in await kubectl("logs", "p", fails=True)


async def test_drain_waits_for_the_budget(served: Served, kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=MANIFEST)
    await add_node(served)
    await add_running_pod(served, "llm-0")
    await allow(served, 0)
    since = served.store.revision
    draining = asyncio.create_task(kubectl("drain", "n1", "--force", "--timeout=25s"))
    refused = await kubectl_refusal(draining, served)
    assert refused, "the drain must meet the budget before it is opened"
    await allow(served, 1)
    async for change in served.kube.watch(port.POD, "default", resource_version=str(since)):
        # What a kubelet does once the containers have ended.
        if change.object["metadata"].get("deletionTimestamp"):
            await served.kube.delete(port.POD, "llm-0", "default", grace_s=0)
            break
    assert "node/n1 drained" in await draining
    assert (await served.kube.get(port.PDB, "llm", "default"))["status"]["disruptionsAllowed"] == 0


async def kubectl_refusal(draining: asyncio.Task[str], served: Served) -> bool:
    """Waits until the drain has been refused once: the server counts its 429 answers."""
    async with asyncio.timeout(15):
        while not served.refused:
            assert not draining.done(), draining.result()
            await asyncio.sleep(0.02)
    return True


async def test_top_shows_what_pods_and_nodes_take(served: Served, kubectl: Kubectl) -> None:
    await add_node(served)
    await add_running_pod(served, "p")
    pod = await served.kube.get(port.POD, "p", "default")
    container = pod["spec"]["containers"][0]["name"]
    node, long_ago = pod["spec"]["nodeName"], "2026-01-01T00:00:00Z"
    served.uses[node] = lambda: [ContainerUse("default", "p", container, long_ago, 250.0, 96 * 2**20)]
    assert (await kubectl("top", "pods", "--no-headers")).split() == ["p", "250m", "96Mi"]
    assert (await kubectl("top", "nodes", "--no-headers")).split()[:2] == [node, "250m"]
    served.uses[node] = lambda: None
    assert "podmetrics.metrics.k8s.io" in await kubectl("top", "pod", "p", fails=True)
