"""Metric samples as a scenario gives them: for the embedded autoscaler in process, for the real one over HTTPS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fakes.clock import WallClock, parse_stamp, stamp
from fakes.metrics.reader import PodMetric
from harness.kube.port import POD, Json, Kube

CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"


@dataclass(slots=True)
class GivenMetrics:
    """All by namespace and metric. ``pods``: one value for every pod of the namespace, or one by number, the oldest pod
    first (None: no sample). ``objects``: by name of the object too. ``external``: a list of series."""

    kube: Kube
    wall: WallClock
    pods: dict[tuple[str, str], float | Sequence[float | None]] = field(default_factory=dict)
    objects: dict[tuple[str, str, str], float] = field(default_factory=dict)
    external: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    async def pod_metric(self, namespace: str, selector: str, metric: str) -> list[PodMetric]:
        given = self.pods.get((namespace, metric))
        if given is None:
            return []
        found = (await self.kube.list(POD, namespace, label_selector=selector)).items
        pods = sorted(found, key=lambda p: (p["metadata"]["creationTimestamp"], p["metadata"]["name"]))
        values = given if isinstance(given, Sequence) else [given] * len(pods)
        now = parse_stamp(self.wall.stamp())
        named = zip((p["metadata"]["name"] for p in pods), values, strict=False)
        return [PodMetric(name, value, now, 60.0) for name, value in named if value is not None]

    def apis(self) -> tuple[GivenApi, ...]:
        return GivenApi(self, CUSTOM, "v1beta1"), GivenApi(self, CUSTOM, "v1beta2"), GivenApi(self, EXTERNAL, "v1beta1")


@dataclass(frozen=True, slots=True)
class GivenApi:
    """One of the aggregated APIs over the samples."""

    given: GivenMetrics
    group: str
    version: str

    @property
    def resources(self) -> list[Json]:
        """What an autoscaler's client asks of discovery is only that the version is there."""
        if self.group == EXTERNAL:
            names = sorted({metric for _, metric in self.given.external})
            return [_served(name, "ExternalMetricValueList") for name in names]
        names = sorted({metric for _, metric in self.given.pods})
        return [_served(f"pods/{name}", "MetricValueList") for name in names]

    async def handle(self, path: str, query: Mapping[str, str]) -> tuple[int, Json]:
        parts = path.strip("/").split("/")
        if self.group == EXTERNAL:
            return self._external(parts)
        _, namespace, kind, name, metric = parts
        if kind == "pods" and name == "*":
            found = await self.given.pod_metric(namespace, query.get("labelSelector", ""), metric)
            if not found:
                return _not_found(f"the server could not find the metric {metric} for pods")
            return self._values([(("Pod", p.pod), p.value) for p in found], namespace, metric)
        value = self.given.objects.get((namespace, name, metric))
        if value is None:
            return _not_found(f"the server could not find the metric {metric} for {kind} {name}")
        return self._values([((kind, name), value)], namespace, metric)

    def _values(self, values: Sequence[tuple[tuple[str, str], float]], namespace: str, metric: str) -> tuple[int, Json]:
        named: Json = {"metricName": metric} if self.version == "v1beta1" else {"metric": {"name": metric}}
        items = [
            {
                "describedObject": {"kind": kind, "namespace": namespace, "name": name, "apiVersion": "/v1"},
                **named,
                "timestamp": stamp(self.given.wall.now()),
                "value": _quantity(value),
            }
            for (kind, name), value in values
        ]
        return 200, _list("MetricValueList", f"{self.group}/{self.version}", items)

    def _external(self, parts: Sequence[str]) -> tuple[int, Json]:
        _, namespace, metric = parts
        values = self.given.external.get((namespace, metric))
        if values is None:
            return _not_found(f"the server could not find the metric {metric}")
        at = stamp(self.given.wall.now())
        items = [{"metricName": metric, "metricLabels": {}, "timestamp": at, "value": _quantity(v)} for v in values]
        return 200, _list("ExternalMetricValueList", f"{self.group}/{self.version}", items)


def _served(name: str, kind: str) -> Json:
    return {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": ["get"]}


def _list(kind: str, api_version: str, items: list[Json]) -> Json:
    return {"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items}


def _quantity(value: float) -> str:
    return f"{round(value * 1000)}m"


def _not_found(message: str) -> tuple[int, Json]:
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return 404, body | {"reason": "NotFound", "code": 404}
