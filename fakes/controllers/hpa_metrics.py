"""What a metric of an autoscaler asks for: reading it as the real controller's clients do, and wording its failures.

After kubernetes v1.37 pkg/controller/podautoscaler: the texts stand in conditions and events, where people and
dashboards read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fakes.clock import WallClock
from fakes.controllers.hpa_resource import GROUP as RESOURCES_GROUP
from fakes.controllers.hpa_resource import ResourceSource
from fakes.controllers.label_text import selector_in_go, selector_text
from fakes.controllers.objects import name_of
from fakes.controllers.quantity import format_milli, milli
from fakes.controllers.scaling import MetricsMissing, Proposal, Tolerances, propose, propose_average, propose_total
from fakes.metrics.reader import MetricsApi, MetricsReader
from fakes.timing import Timing
from harness.kube.port import RESOURCES, ApiError, Json, Resource

CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"


@dataclass(frozen=True, slots=True)
class Target:
    """The scale of what is autoscaled, and the pods behind it. ``replicas`` is the wanted number, ``present`` the one
    in its status."""

    resource: Resource
    name: str
    replicas: int
    present: int
    selector: str
    pods: Sequence[Json]


@dataclass(frozen=True, slots=True)
class Wanted:
    """``status`` is the entry of ``status.currentMetrics``."""

    replicas: int
    name: str
    status: Json


class MetricFailed(Exception):
    """``reason`` and the text are those of the condition; ``outer`` is how the whole computation words it."""

    def __init__(self, reason: str, text: str, outer: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.outer = outer


class MetricSources:
    """``apis``: what is served as aggregated APIs; samples of pods come through ``reader``."""

    def __init__(
        self,
        reader: MetricsReader,
        apis: Sequence[MetricsApi],
        wall: WallClock,
        timing: Timing,
        *,
        empty_is_zero: bool = False,
    ) -> None:
        """``empty_is_zero`` plants the bug of an autoscaler that takes a missing value for 0."""
        self._reader = reader
        self._empty_is_zero = empty_is_zero
        self._apis = {api.group: api for api in apis}
        self._resources = ResourceSource(self._apis.get(RESOURCES_GROUP), wall, timing)

    async def wanted(self, namespace: str, spec: Json, target: Target, tolerances: Tolerances) -> Wanted:
        """Raises ``MetricFailed``."""
        match spec.get("type"):
            case "Pods":
                return await self._of_pods(namespace, spec["pods"], target, tolerances)
            case "Object":
                return await self._of_object(namespace, spec["object"], target, tolerances)
            case "External":
                return await self._of_external(namespace, spec["external"], target, tolerances)
            case "Resource":
                return await self._of_resource(namespace, "resource", spec["resource"], target, tolerances)
            case "ContainerResource":
                found = spec["containerResource"]
                return await self._of_resource(namespace, "containerResource", found, target, tolerances)
        text = f'unknown metric source type "{spec.get("type")}"'
        raise MetricFailed("InvalidMetricSourceType", text, text)

    async def _of_pods(self, namespace: str, spec: Json, target: Target, tolerances: Tolerances) -> Wanted:
        name = spec["metric"]["name"]
        try:
            try:
                found = await self._reader.pod_metric(namespace, target.selector, name)
            except (ApiError, ConnectionError) as error:
                raise MetricsMissing(_custom(_text(error))) from error
            if not found and not self._empty_is_zero:
                raise MetricsMissing(_custom(f"the server could not find the metric {name} for pods"))
        except MetricsMissing as missing:
            text = f"unable to get metric {name}: {missing}"
            raise MetricFailed("FailedGetPodsMetric", text, f"failed to get pods metric value: {text}") from missing
        values = {m.pod: milli(m.value) for m in found} or {name_of(pod): 0 for pod in target.pods}
        wanted = milli(spec["target"]["averageValue"])
        try:
            proposal = propose(target.pods, values, target.replicas, wanted, tolerances)
        except MetricsMissing as missing:
            outer = f"failed to get pods metric value: {missing}"
            raise MetricFailed("FailedGetPodsMetric", str(missing), outer) from missing
        current = {"averageValue": format_milli(proposal.usage_milli)}
        status = {"type": "Pods", "pods": {"metric": _metric(spec), "current": current}}
        return Wanted(proposal.replicas, f"pods metric {name}", status)

    async def _of_resource(
        self, namespace: str, field: str, spec: Json, target: Target, tolerances: Tolerances
    ) -> Wanted:
        name, container = str(spec["name"]), str(spec.get("container", ""))
        try:
            found = await self._resources.propose(
                namespace, spec, target.selector, target.pods, target.replicas, tolerances
            )
        except MetricsMissing as missing:
            kind = f"{container} container" if container else f"{name} resource"
            reason = "FailedGetContainerResourceMetric" if container else "FailedGetResourceMetric"
            raise MetricFailed(reason, str(missing), f"failed to get {kind} metric value: {missing}") from missing
        named = {"name": name, "container": container} if container else {"name": name}
        what = f"{name} container resource" if container and found.percent is not None else f"{name} resource"
        if found.percent is not None:
            what += " utilization (percentage of request)"
        status: Json = {"type": field[0].upper() + field[1:], field: named | {"current": found.current()}}
        return Wanted(found.replicas, what, status)

    async def _of_object(self, namespace: str, spec: Json, target: Target, tolerances: Tolerances) -> Wanted:
        name, described = spec["metric"]["name"], spec["describedObject"]
        value, average = _targets(spec)
        inner = f"{name} object metric: " if average is not None else ""
        try:
            try:
                usage = await self._object_value(namespace, described, name)
            except MetricsMissing as missing:
                where = f"{described['kind']} {namespace}/{described['name']}"
                raise MetricsMissing(f"unable to get metric {name} on {where}: {missing}") from missing
            proposal = _proposal([usage], value, average, target, tolerances)
        except MetricsMissing as missing:
            outer = f"failed to get object metric value: {'failed to get ' if inner else ''}{inner}{missing}"
            raise MetricFailed("FailedGetObjectMetric", str(missing), outer) from missing
        current = _current(proposal, average is not None)
        parts = {"describedObject": described, "metric": _metric(spec), "current": current}
        # The real controller calls an object's average an external metric.
        says = _external_name(spec) if average is not None else f"{described['kind']} metric {name}"
        return Wanted(proposal.replicas, says, {"type": "Object", "object": parts})

    async def _of_external(self, namespace: str, spec: Json, target: Target, tolerances: Tolerances) -> Wanted:
        name = spec["metric"]["name"]
        value, average = _targets(spec)
        try:
            try:
                usages = await self._external_values(namespace, spec["metric"])
            except MetricsMissing as missing:
                where = f"{namespace}/{name}/{selector_in_go(spec['metric'].get('selector'))}"
                raise MetricsMissing(f"unable to get external metric {where}: {missing}") from missing
            proposal = _proposal(usages, value, average, target, tolerances)
        except MetricsMissing as missing:
            what = f"{name} external metric" if average is not None else f"external metric {name}"
            outer = f"failed to get {name} external metric value: failed to get {what}: {missing}"
            raise MetricFailed("FailedGetExternalMetric", str(missing), outer) from missing
        current = _current(proposal, average is not None)
        status = {"type": "External", "external": {"metric": _metric(spec), "current": current}}
        return Wanted(proposal.replicas, _external_name(spec), status)

    async def _object_value(self, namespace: str, described: Json, metric: str) -> int:
        api = self._apis.get(CUSTOM)
        if api is None:
            raise MetricsMissing(_custom(f"no custom metrics API ({CUSTOM}) registered"))
        where = f"{_plural(described)}/{described['name']}"
        status, body = await api.handle(f"namespaces/{namespace}/{where}/{metric}", {})
        if status >= 400:
            raise MetricsMissing(_custom(str(body.get("message", ""))))
        return milli(body["items"][0]["value"])

    async def _external_values(self, namespace: str, metric: Json) -> list[int]:
        api, said = self._apis.get(EXTERNAL), "unable to fetch metrics from external metrics API"
        if api is None:
            lost = f"the server could not find the requested resource (get {metric['name']}.{EXTERNAL})"
            raise MetricsMissing(f"{said}: {lost}")
        query = {"labelSelector": selector_text(metric.get("selector") or {})}
        status, body = await api.handle(f"namespaces/{namespace}/{metric['name']}", query)
        if status >= 400:
            raise MetricsMissing(f"{said}: {body.get('message', '')}")
        if not body["items"]:
            raise MetricsMissing("no metrics returned from external metrics API")
        return [milli(item["value"]) for item in body["items"]]


def _proposal(
    usages: Sequence[int], value: int | None, average: int | None, target: Target, tolerances: Tolerances
) -> Proposal:
    usage = sum(usages)
    if average is not None:
        return propose_average(usage, average, target.present, tolerances)
    return propose_total(usage, value or 1, target.replicas, target.pods, tolerances)


def _targets(spec: Json) -> tuple[int | None, int | None]:
    """Value and average value, in thousandths."""
    value, average = spec["target"].get("value"), spec["target"].get("averageValue")
    return (None if value is None else milli(value)), (None if average is None else milli(average))


def _current(proposal: Proposal, average: bool) -> Json:
    return {"averageValue" if average else "value": format_milli(proposal.usage_milli)}


def _metric(spec: Json) -> Json:
    return {k: v for k, v in spec["metric"].items() if k in ("name", "selector") and v is not None}


def _external_name(spec: Json) -> str:
    return f"external metric {spec['metric']['name']}({selector_in_go(spec['metric'].get('selector'))})"


def _custom(said: str) -> str:
    return f"unable to fetch metrics from custom metrics API: {said}"


def _plural(described: Json) -> str:
    """As the custom metrics API names a kind: ``services``, ``deployments.apps``."""
    group = described.get("apiVersion", "").rpartition("/")[0]
    for resource in RESOURCES:
        if resource.group == group and resource.kind == described["kind"]:
            return f"{resource.plural}.{group}" if group else resource.plural
    return str(described["kind"]).lower() + "s"


def _text(error: Exception) -> str:
    return str(getattr(error, "message", error))
