"""From a pod's /metrics to the autoscaler's question, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from seen import until

from fakes.clock import WallClock
from fakes.kube import LocalKube, Store
from fakes.metrics.api_server import metrics_app
from fakes.metrics.custom_metrics import CustomMetrics, quantity
from fakes.metrics.external_metrics import ExternalMetrics
from fakes.metrics.scraper import Scraper
from fakes.nodes.address import LISTEN_ANNOTATION
from fakes.timing import Durations, Timing
from harness.kube.port import NAMESPACE, POD, Json

NS = "inference"
METRIC = "vllm_num_requests_waiting"
FAST = Timing(1, replace(Durations(), metrics_scrape_s=0.02))


class Replica:
    """What one pod's /metrics says, and how often it was asked."""

    def __init__(self, waiting: float) -> None:
        self.waiting = waiting
        self.status = 200
        self.asked = 0

    async def answer(self, http: web.Request) -> web.Response:
        self.asked += 1
        text = f'vllm:num_requests_waiting{{engine="0"}} {self.waiting}\nvllm:num_requests_running{{engine="0"}} 1.0\n'
        return web.Response(text=text, status=self.status)


class Cluster:
    def __init__(self, timing: Timing) -> None:
        wall = WallClock(datetime(2026, 11, 29, 12, tzinfo=UTC))
        self.kube = LocalKube(Store(wall, Random(1)), "test")
        self.scraper = Scraper(self.kube, timing, NS, "")
        self.metrics = CustomMetrics(self.scraper, wall)
        self._runners: list[web.AppRunner] = []

    async def add(self, pod: str, replica: Replica, *, phase: str = "Running", **labels: str) -> None:
        app = web.Application()
        app.router.add_get("/metrics", replica.answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._runners.append(runner)
        listen = f"127.0.0.1:{runner.addresses[0][1]}"
        meta = {
            "name": pod,
            "namespace": NS,
            "annotations": {LISTEN_ANNOTATION: listen},
            "labels": {"app": "llm", **labels},
        }
        await self.kube.create(POD, {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "vllm"}]}})
        await self.kube.patch(POD, pod, {"status": {"phase": phase}}, NS, subresource="status")

    async def close(self) -> None:
        for runner in self._runners:
            await runner.cleanup()

    async def ask(self, name: str = "*", metric: str = METRIC, selector: str = "app=llm") -> tuple[int, Json]:
        return await self.metrics.handle(f"namespaces/{NS}/pods/{name}/{metric}", {"labelSelector": selector})


@asynccontextmanager
async def cluster(timing: Timing = FAST) -> AsyncIterator[Cluster]:
    c = Cluster(timing)
    await c.kube.create(NAMESPACE, {"metadata": {"name": NS}})
    scraping = asyncio.create_task(c.scraper.run())
    try:
        yield c
    finally:
        scraping.cancel()
        await asyncio.wait([scraping])
        await c.close()


async def test_values_of_all_pods_of_a_selector_in_both_versions() -> None:
    async with cluster() as c:
        await c.add("llm-a", Replica(3))
        await c.add("llm-b", Replica(0.25), shard="2")
        await until(lambda: all(c.scraper.latest(NS, p) for p in ("llm-a", "llm-b")), "a scrape of each")
        status, answer = await c.ask()
        items = {i["describedObject"]["name"]: i for i in answer["items"]}
        assert (status, answer["kind"], answer["apiVersion"]) == (
            200,
            "MetricValueList",
            "custom.metrics.k8s.io/v1beta1",
        )
        assert {name: i["value"] for name, i in items.items()} == {"llm-a": "3", "llm-b": "250m"}
        a = items["llm-a"]
        assert a["timestamp"].startswith("2026-11-29T12:00:")
        assert a["describedObject"] == {"kind": "Pod", "namespace": NS, "name": "llm-a", "apiVersion": "/v1"}
        assert a["metricName"] == METRIC
        _, newer = await c.metrics.v1beta2.handle(f"namespaces/{NS}/pods/llm-b/{METRIC}", {})
        assert newer["apiVersion"] == "custom.metrics.k8s.io/v1beta2"
        assert [i["metric"] for i in newer["items"]] == [{"name": METRIC, "selector": None}]
        _, one = await c.ask(selector="app=llm,shard=2")
        assert [i["describedObject"]["name"] for i in one["items"]] == ["llm-b"]
        assert [r["name"] for r in c.metrics.resources] == ["pods/vllm_num_requests_running", f"pods/{METRIC}"]
        (value,) = await c.metrics.pod_metric(NS, "shard=2", METRIC)
        assert (value.pod, value.value) == ("llm-b", 0.25)


async def test_what_is_not_known_is_404_and_never_0() -> None:
    async with cluster() as c:
        assert await c.ask() == (
            404,
            {
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "NotFound",
                "message": f"the server could not find the metric {METRIC} for pods", "code": 404,
            },
        )  # fmt: skip
        await c.add("llm-a", Replica(1))
        await until(lambda: c.scraper.latest(NS, "llm-a") is not None, "a scrape")
        assert (await c.ask("llm-b"))[1]["message"] == f"the server could not find the metric {METRIC} for pods llm-b"
        assert (await c.ask(metric="nope"))[0] == 404
        assert (await c.ask(selector="app=other"))[0] == 404
        assert (await c.metrics.handle(f"namespaces/{NS}/services/x/{METRIC}", {}))[0] == 404
        assert await c.metrics.pod_metric(NS, "app=other", METRIC) == []


async def test_a_failed_scrape_marks_stale_what_was_known_of_the_pod() -> None:
    async with cluster() as c:
        replica = Replica(5)
        await c.add("llm-a", replica)
        await until(lambda: c.scraper.latest(NS, "llm-a") is not None, "a scrape")
        replica.status = 503
        await until(lambda: c.scraper.latest(NS, "llm-a") is None, "a scrape that fails")
        assert (await c.ask())[0] == 404
        replica.status, replica.waiting = 200, 9
        await until(lambda: c.scraper.latest(NS, "llm-a") is not None, "a scrape that succeeds")
        assert (await c.ask())[1]["items"][0]["value"] == "9"


async def test_a_sample_too_old_no_longer_counts() -> None:
    # Five scenario minutes are a second at this scale.
    async with cluster(Timing(300, replace(Durations(), metrics_scrape_s=6))) as c:
        replica = Replica(5)
        await c.add("llm-a", replica)
        await until(lambda: c.scraper.latest(NS, "llm-a") is not None, "a scrape")
        c.scraper.stands_still = True
        await until(lambda: c.scraper.latest(NS, "llm-a") is None, "the end of its last sample")
        assert (await c.ask())[0] == 404


async def test_only_running_pods_are_scraped_and_deleted_ones_are_forgotten() -> None:
    async with cluster() as c:
        pending, gone = Replica(1), Replica(2)
        await c.add("llm-pending", pending, phase="Pending")
        await c.add("llm-gone", gone)
        await until(lambda: c.scraper.latest(NS, "llm-gone") is not None, "a scrape")
        await c.kube.delete(POD, "llm-gone", NS, grace_s=0)
        await until(lambda: c.scraper.latest(NS, "llm-gone") is None, "it is forgotten")
        assert pending.asked == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (3, "3"), (2.5, "2500m"), (0.0004, "0"), (0.0005, "1m"), (1000, "1k"), (1500, "1500"), (12e6, "12M")],
)
def test_quantities_as_kubernetes_prints_them(value: float, text: str) -> None:
    assert quantity(value) == text


async def test_external_metrics_are_the_series_of_the_scraped_pods() -> None:
    async with cluster() as c:
        external = ExternalMetrics(c.metrics)
        assert (await external.handle(f"namespaces/{NS}/{METRIC}", {}))[1]["items"] == [], "an error to the autoscaler"
        await c.add("llm-a", Replica(3))
        await c.add("llm-b", Replica(0.25))
        await until(lambda: all(c.scraper.latest(NS, p) for p in ("llm-a", "llm-b")), "a scrape of each")
        status, answer = await external.handle(f"namespaces/{NS}/{METRIC}", {})
        assert (status, answer["kind"], answer["apiVersion"]) == (
            200,
            "ExternalMetricValueList",
            "external.metrics.k8s.io/v1beta1",
        )
        assert {i["metricLabels"]["pod"]: i["value"] for i in answer["items"]} == {"llm-a": "3", "llm-b": "250m"}
        assert {i["metricName"] for i in answer["items"]} == {METRIC}
        _, one = await external.handle(f"namespaces/{NS}/{METRIC}", {"labelSelector": "pod in (llm-b),namespace"})
        assert [i["metricLabels"] for i in one["items"]] == [{"namespace": NS, "pod": "llm-b"}]
        assert (await external.handle(f"namespaces/{NS}/{METRIC}", {"labelSelector": "a b"}))[0] == 400
        assert (await external.handle(f"namespaces/{NS}/pods/x/{METRIC}", {}))[0] == 404
        assert METRIC in [r["name"] for r in external.resources]


async def test_a_server_of_the_metrics_apis_answers_as_an_aggregator_expects() -> None:
    async with cluster() as c:
        await c.add("llm-a", Replica(3))
        await until(lambda: c.scraper.latest(NS, "llm-a") is not None, "a scrape")
        app = metrics_app([c.metrics, c.metrics.v1beta2, ExternalMetrics(c.metrics)])
        async with TestClient(TestServer(app)) as client:
            for version, names in (
                ("custom.metrics.k8s.io/v1beta2", f"pods/{METRIC}"),
                ("external.metrics.k8s.io/v1beta1", METRIC),
            ):
                answer = await client.get(f"/apis/{version}")
                served = await answer.json()
                assert (served["kind"], served["groupVersion"]) == ("APIResourceList", version)
                assert names in [r["name"] for r in served["resources"]]
            answer = await client.get(f"/apis/custom.metrics.k8s.io/v1beta1/namespaces/{NS}/pods/*/{METRIC}")
            assert [i["value"] for i in (await answer.json())["items"]] == ["3"]
            assert (await client.get("/healthz")).status == 200
            for path in ("/openapi/v2", "/apis/custom.metrics.k8s.io/v9", "/apis"):
                answer = await client.get(path)
                assert (answer.status, (await answer.json())["reason"]) == (404, "NotFound")
            answer = await client.post("/apis/custom.metrics.k8s.io/v1beta1/x", json={})
            assert answer.status == 405
