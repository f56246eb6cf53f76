"""Proofs of what measures, and of what scales by it."""

from __future__ import annotations

import httpx
from aiohttp import web
from proving import NS, model_server, template, until

from harness.kube.http import HttpKube
from harness.kube.port import DEPLOYMENT, POD, Kube
from harness.stack.addons import Standing
from harness.stack.ports import HOST

CUSTOM = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{NS}/pods/*/vllm_num_requests_waiting"


async def prometheus(kube: Kube, standing: Standing) -> str:
    await kube.create(POD, model_server("server"))
    url = f"http://{HOST}:{standing.ports['prometheus/web']}/api/v1/query"

    async def scraped() -> str:
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            found = (await client.get(url, params={"query": 'vllm:num_requests_waiting{pod="server"}'})).json()
        return "" if found["data"]["result"] else f"it knows nothing of the pod: {found}"

    await until(scraped)
    return "scraped a model server"


async def prometheus_adapter(kube: Kube, standing: Standing) -> str:
    assert isinstance(kube, HttpKube)
    await kube.create(POD, model_server("server"))

    async def answers() -> str:
        items = (await kube.raw(CUSTOM))["items"]
        return "" if [i["describedObject"]["name"] for i in items] == ["server"] else f"it says {items}"

    await until(answers)
    return "answered custom.metrics.k8s.io for a model server, out of Prometheus"


async def metrics_server(kube: Kube, standing: Standing) -> str:
    """Two nodes and a pod, once it has asked their kubelets twice."""
    assert isinstance(kube, HttpKube)
    await kube.create(POD, model_server("server"))

    async def measured() -> str:
        found = {}
        for what in ("nodes", f"namespaces/{NS}/pods"):
            items = (await kube.raw(f"/apis/metrics.k8s.io/v1beta1/{what}"))["items"]
            found[what] = len(items)
        return "" if list(found.values()) == [2, 1] else f"it has measured {found}"

    await until(measured)
    return "measured two nodes and a pod, by what their kubelets say"


async def keda(kube: Kube, standing: Standing) -> str:
    """From zero by what a source says, and back."""
    kinds = {kind.kind: kind for kind in standing.kinds}
    waiting = 12

    async def says(request: web.Request) -> web.Response:
        return web.json_response({"waiting": waiting})

    app = web.Application()
    app.router.add_get("/", says)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0)
    await site.start()
    port = runner.addresses[0][1]
    selector = {"matchLabels": {"app": "smoke"}}
    spec = {"replicas": 0, "selector": selector, "template": template({"cpu": "1"})}
    await kube.create(DEPLOYMENT, {"metadata": {"name": "d", "namespace": NS}, "spec": spec})
    metadata = {"url": f"http://{HOST}:{port}/", "valueLocation": "waiting", "targetValue": "5"}
    scaled = {
        "scaleTargetRef": {"name": "d"}, "minReplicaCount": 0, "maxReplicaCount": 4, "pollingInterval": 2,
        "cooldownPeriod": 5, "triggers": [{"type": "metrics-api", "metadata": metadata}],
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}},
    }  # fmt: skip
    await kube.create(kinds["ScaledObject"], {"metadata": {"name": "s", "namespace": NS}, "spec": scaled})

    async def size_is(wanted: int) -> str:
        now = (await kube.get(DEPLOYMENT, "d", NS))["spec"]["replicas"]
        return "" if now == wanted else f"{now} replicas in place of {wanted}"

    try:
        await until(lambda: size_is(3))
        waiting = 0
        await until(lambda: size_is(0))
    finally:
        await runner.cleanup()
    return "brought a Deployment from zero to what its source asked for, and back to zero"
