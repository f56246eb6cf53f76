"""One thing for each real component that only it can have done."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import httpx
from group_proofs import jobset, kuberay, lws
from metrics_proofs import keda, metrics_server, prometheus, prometheus_adapter
from proving import NS, is_true, model_server, pod, until

from fakes.gateway.ext_proc import Picked
from fakes.gateway.picker import EndpointPicker
from harness.errors import TargetError
from harness.kube.port import NAMESPACE, NODE, NODE_CLAIM, NODE_POOL, POD, Kube, Resource
from harness.stack.addons import Standing
from harness.stack.ports import HOST

JOB = Resource("batch", "v1", "jobs", "Job", True)
Proof = Callable[[Kube, Standing], Awaitable[str]]


async def karpenter(kube: Kube, standing: Standing) -> str:
    """Two nodes of four GPUs are there; the third pod of four needs a node that nobody but Karpenter orders."""
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    requirements = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}]
    template = {"spec": {"nodeClassRef": reference, "requirements": requirements}}
    await kube.create(NODE_POOL, {"metadata": {"name": "gpu"}, "spec": {"template": template}})
    for n in range(3):
        await kube.create(POD, pod(f"p{n}", {"nvidia.com/gpu": "4"}))

    async def all_run() -> str:
        pods = (await kube.list(POD, NS)).items
        claims = (await kube.list(NODE_CLAIM)).items
        if not claims:
            return "no NodeClaim"
        waiting = [p["metadata"]["name"] for p in pods if (p.get("status") or {}).get("phase") != "Running"]
        if waiting:
            return f"{waiting} do not run"
        return "" if is_true(claims[0], "Initialized") else "the NodeClaim is not initialised"

    await until(all_run)
    return "ordered a node, a hollow kubelet adopted it, the pod without room runs there"


async def kueue(kube: Kube, standing: Standing) -> str:
    """Quota for one of two jobs."""
    kinds = {kind.kind: kind for kind in standing.kinds}
    await kube.create(kinds["ResourceFlavor"], {"metadata": {"name": "any"}})
    flavor = {"name": "any", "resources": [{"name": "cpu", "nominalQuota": "1"}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
    spec = {"namespaceSelector": {}, "resourceGroups": groups}
    await kube.create(kinds["ClusterQueue"], {"metadata": {"name": "all"}, "spec": spec})
    queue = {"metadata": {"name": "q", "namespace": NS}, "spec": {"clusterQueue": "all"}}
    await kube.create(kinds["LocalQueue"], queue)
    for name in ("one", "two"):
        inner = pod(name, {"cpu": "1"})["spec"] | {"restartPolicy": "Never"}
        job = {
            "metadata": {"name": name, "namespace": NS, "labels": {"kueue.x-k8s.io/queue-name": "q"}},
            "spec": {"suspend": True, "template": {"spec": inner}},
        }
        await kube.create(JOB, job)

    async def one_of_two() -> str:
        workloads = (await kube.list(kinds["Workload"], NS)).items
        admitted = sum(is_true(workload, "Admitted") for workload in workloads)
        started = sum(not job["spec"]["suspend"] for job in (await kube.list(JOB, NS)).items)
        right = (len(workloads), admitted, started) == (2, 1, 1)
        return "" if right else f"{len(workloads)} workloads, {admitted} admitted, {started} jobs started"

    await until(one_of_two)
    return "admitted one of two jobs, for which there was quota, and held the other back"


async def kwok(kube: Kube, standing: Standing) -> str:
    annotations = {"kwok.x-k8s.io/node": "fake"}
    await kube.create(NODE, {"metadata": {"name": "kwok-1", "annotations": annotations}})

    async def ready() -> str:
        return "" if is_true(await kube.get(NODE, "kwok-1"), "Ready") else "the node is not Ready"

    await until(ready)
    return "made a node Ready that has no kubelet"


async def epp(kube: Kube, standing: Standing) -> str:
    kinds = {(kind.kind, kind.group): kind for kind in standing.kinds}
    pool = kinds["InferencePool", "inference.networking.k8s.io"]
    await kube.create(NAMESPACE, {"metadata": {"name": "inference"}})
    server = model_server("server", "inference")
    await kube.create(POD, server)
    reference = {"name": "epp", "port": {"number": 9002}}
    selector = {"matchLabels": {"app": "smoke"}}
    spec = {"selector": selector, "targetPorts": [{"number": 8000}], "endpointPickerRef": reference}
    await kube.create(pool, {"metadata": {"name": "llm", "namespace": "inference"}, "spec": spec})
    url = f"http://{HOST}:{standing.ports['epp/metrics']}/metrics"

    async def counts_it() -> str:
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            text = (await client.get(url)).text
        lines = [line for line in text.splitlines() if line.startswith("inference_pool_ready_pods{")]
        return "" if any(line.split()[-1] == "1" for line in lines) else f"it says {lines or 'nothing of its pool'}"

    await until(counts_it)
    picker = EndpointPicker(f"{HOST}:{standing.ports['epp/grpc']}")
    chat = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    answer = await picker.ask("/v1/chat/completions", json.dumps(chat).encode())
    await picker.close()
    if not isinstance(answer, Picked):
        raise TargetError(f"it did not choose: {answer}")
    host, port = answer.places[0]
    async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
        status = (await client.get(f"http://{host}:{port}/health")).status_code
    if status != 200:
        raise TargetError(f"it chose {host}:{port}, which answers {status}")
    return "read its pool, found the one pod that is ready, and sent a request to the address where it answers"


PROOFS: dict[str, Proof] = {
    "karpenter": karpenter,
    "kueue": kueue,
    "kwok": kwok,
    "epp": epp,
    "lws": lws,
    "jobset": jobset,
    "kuberay": kuberay,
    "prometheus": prometheus,
    "prometheus-adapter": prometheus_adapter,
    "metrics-server": metrics_server,
    "keda": keda,
}
