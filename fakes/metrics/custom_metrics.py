"""``custom.metrics.k8s.io`` as a Prometheus adapter serves it, and the same answers in process for the autoscaler.

A metric ``vllm:num_requests_waiting`` is named ``vllm_num_requests_waiting`` here. Pods are found by the API server,
their values in the scraper's newest samples; a pod without a sample that still counts is left out, and when no pod has
one the answer is 404: not known is not 0.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from fakes.clock import WallClock, stamp
from fakes.config import PlantedBug
from fakes.metrics.gpu_scraper import GpuScraper
from fakes.metrics.mischief import MetricsMischief
from fakes.metrics.reader import PodMetric
from fakes.metrics.scraper import Scrape, Scraper
from harness.kube.port import POD, ApiError, Json

GROUP = "custom.metrics.k8s.io"
GPU_METRICS = "DCGM_FI_"
WINDOW_S = 60.0
"""What the autoscaler assumes when a value comes without a window, as values of gauges do."""

_SUFFIXES = ("", "k", "M", "G", "T", "P", "E")


def quantity(value: float) -> str:
    """A Kubernetes quantity, to the thousandth: ``3``, ``2500m``, ``12k``."""
    milli = math.floor(value * 1000 + 0.5)
    if milli % 1000:
        return f"{milli}m"
    whole, suffix = milli // 1000, 0
    while whole and whole % 1000 == 0 and suffix < len(_SUFFIXES) - 1:
        whole //= 1000
        suffix += 1
    return f"{whole}{_SUFFIXES[suffix]}"


class CustomMetrics:
    """The ``MetricsReader``, and the aggregated API in its older version; ``v1beta2`` is the same API in the newer."""

    group = GROUP
    version = "v1beta1"

    def __init__(
        self,
        scraper: Scraper,
        wall: WallClock,
        gpus: GpuScraper | None = None,
        bugs: Collection[PlantedBug] = (),
    ) -> None:
        self._mischief = MetricsMischief(bugs, scraper.timing)
        self._scraper = scraper
        self._gpus = gpus
        self._wall = wall
        self.empty_is_zero = False
        """The query finds nothing, and what stands between it and the autoscaler makes a 0 of that."""
        self.v1beta2 = CustomMetricsV2(self)

    @property
    def blank(self) -> bool:
        return self._scraper.blank

    def dated(self, scrape: Scrape) -> datetime:
        return self._wall.now() - timedelta(seconds=self._age_s(scrape))

    async def pod_metric(self, namespace: str, selector: str, metric: str) -> list[PodMetric]:
        pods = await self._scraper.kube.list(POD, namespace, label_selector=selector)
        found = (self._value(namespace, pod["metadata"]["name"], metric) for pod in pods.items)
        return [value for value in found if value is not None]

    def names(self) -> list[str]:
        """All metrics seen on any pod or GPU."""
        return [*self._scraper.names(), *(self._gpus.names() if self._gpus else ())]

    @property
    def resources(self) -> list[Json]:
        return [
            {
                "name": f"pods/{name}",
                "singularName": "",
                "namespaced": True,
                "kind": "MetricValueList",
                "verbs": ["get"],
            }
            for name in self.names()
        ]

    async def handle(self, path: str, query: Mapping[str, str]) -> tuple[int, Json]:
        return await self.answer(self.version, path, query)

    async def answer(self, version: str, path: str, query: Mapping[str, str]) -> tuple[int, Json]:
        """``path``: namespaces/NS/pods/NAME/METRIC, where NAME may be ``*``."""
        parts = path.strip("/").split("/")
        if len(parts) != 5 or (parts[0], parts[2]) != ("namespaces", "pods"):
            return _not_found("the server could not find the requested resource")
        _, namespace, _, name, metric = parts
        selector = query.get("labelSelector", "")
        if name == "*":
            try:
                values = await self.pod_metric(namespace, selector, metric)
            except ApiError as error:
                return error.status, dict(error.body)
            about = "pods"
        else:
            one = self._value(namespace, name, metric)
            values = [] if one is None else [one]
            about = f"pods {name}"
        if not values:
            return _not_found(f"the server could not find the metric {metric} for {about}")
        return 200, {
            "kind": "MetricValueList",
            "apiVersion": f"{GROUP}/{version}",
            "metadata": {},
            "items": [_item(version, namespace, metric, value) for value in values],
        }

    def _value(self, namespace: str, pod: str, metric: str) -> PodMetric | None:
        if self._gpus is not None and metric.startswith(GPU_METRICS):
            scrape = self._gpus.latest(namespace, pod)
        else:
            scrape = self._scraper.latest(namespace, pod)
        if scrape is None:
            return None
        value = self._mischief.value(pod, metric, scrape.value(metric))
        if value is None or not math.isfinite(value):
            return None
        if self.empty_is_zero:
            value = 0.0
        return PodMetric(pod, value, self.dated(scrape), WINDOW_S)

    def _age_s(self, scrape: Scrape) -> float:
        return asyncio.get_running_loop().time() - scrape.t_s


class CustomMetricsV2:
    """The newer version: the metric is an object of its own."""

    group = GROUP
    version = "v1beta2"

    def __init__(self, metrics: CustomMetrics) -> None:
        self._metrics = metrics

    @property
    def resources(self) -> list[Json]:
        return self._metrics.resources

    async def handle(self, path: str, query: Mapping[str, str]) -> tuple[int, Json]:
        return await self._metrics.answer(self.version, path, query)


def _item(version: str, namespace: str, metric: str, value: PodMetric) -> Json:
    described = {"kind": "Pod", "namespace": namespace, "name": value.pod, "apiVersion": "/v1"}
    named = {"metricName": metric} if version == "v1beta1" else {"metric": {"name": metric, "selector": None}}
    item = {"describedObject": described, **named, "timestamp": stamp(value.t), "value": quantity(value.value)}
    return item | {"selector": None} if version == "v1beta1" else item


def _not_found(message: str) -> tuple[int, Json]:
    return 404, {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "NotFound",
        "code": 404,
    }
