"""HorizontalPodAutoscalers (pkg/apis/autoscaling/validation/validation.go of kubernetes v1.37)."""

from __future__ import annotations

from collections.abc import Iterator

from fakes.kube.schema import quantity
from fakes.kube.status import Cause, bad_value, forbidden_field, required, unsupported
from fakes.kube.validation.amounts import NOT_NEGATIVE
from fakes.kube.validation.metadata import selector_of
from fakes.kube.validation.pods import one_of
from harness.kube.port import Json

_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")


def autoscaler(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    low, high = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    if low < 0:
        yield bad_value("spec.minReplicas", low, NOT_NEGATIVE)
    if high < low:
        yield bad_value("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")
    yield from _target_ref(spec["scaleTargetRef"], "spec.scaleTargetRef")
    if high == 0:
        yield required("spec.maxReplicas")
    elif high < 0:
        yield bad_value("spec.maxReplicas", high, "must be greater than 0")
    metrics = spec.get("metrics") or []
    for i, metric in enumerate(metrics):
        yield from _metric(metric, f"spec.metrics[{i}]")
    if low == 0 and not any(m.get("type") in ("Object", "External") for m in metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden_field("spec.metrics", text)
    behavior = spec.get("behavior") or {}
    for direction in ("scaleUp", "scaleDown"):
        if (rules := behavior.get(direction)) is not None:
            yield from _rules(rules, f"spec.behavior.{direction}")


def _target_ref(target: Json, path: str) -> Iterator[Cause]:
    for field in ("kind", "name"):
        if not target.get(field):
            yield required(f"{path}.{field}")
    version = target.get("apiVersion", "")
    if "/" not in version and not (version == "v1" and target.get("kind") == "ReplicationController"):
        yield bad_value(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _metric(metric: Json, path: str) -> Iterator[Cause]:
    kind = metric.get("type", "")
    if kind not in _TYPES:
        yield unsupported(f"{path}.type", kind, _TYPES)
        return
    name = kind[:1].lower() + kind[1:]
    source = metric.get(name)
    if source is None:
        yield required(f"{path}.{name}", "must populate information for the given metric source")
        return
    at, target = f"{path}.{name}", source.get("target") or {}
    if kind in ("Resource", "ContainerResource"):
        if not source.get("name"):
            yield required(f"{at}.name", "must specify a resource name")
        if kind == "ContainerResource" and not source.get("container"):
            yield required(f"{at}.container", "must specify a container")
    else:
        if kind == "Object":
            described = source.get("describedObject") or {}
            for field in ("kind", "name"):
                if not described.get(field):
                    yield required(f"{at}.describedObject.{field}")
        asked = source.get("metric") or {}
        if not asked.get("name"):
            yield required(f"{at}.metric.name", "must specify a metric name")
        yield from selector_of(asked.get("selector") or {}, f"{at}.metric.selector")
    yield from _target(target, kind, f"{at}.target")


def _target(target: Json, kind: str, path: str) -> Iterator[Cause]:
    how = target.get("type", "")
    if not how:
        yield required(f"{path}.type", "must specify a metric target type")
    if how not in ("Utilization", "Value", "AverageValue"):
        yield bad_value(f"{path}.type", how, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        if field in target and quantity.number(target[field]) <= 0:
            yield bad_value(f"{path}.{field}", target[field], "must be positive")
    if "averageUtilization" in target and target["averageUtilization"] < 1:
        yield bad_value(f"{path}.averageUtilization", target["averageUtilization"], "must be greater than 0")
    if kind == "Pods":
        if quantity.number(target.get("averageValue", "0")) <= 0:
            yield required(f"{path}.averageValue", "must specify a positive target averageValue")
    elif kind in ("Resource", "ContainerResource"):
        if "averageUtilization" not in target and "averageValue" not in target:
            text = "must set either a target raw value or a target utilization"
            yield required(f"{path}.averageUtilization", text)
        elif "averageUtilization" in target and "averageValue" in target:
            text = "may not set both a target raw value and a target utilization"
            yield forbidden_field(f"{path}.averageValue", text)
    elif "value" not in target and "averageValue" not in target:
        yield required(f"{path}.averageValue", "must set either a target value for metric or a per-pod target")


def _rules(rules: Json, path: str) -> Iterator[Cause]:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        yield bad_value(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window is not None and window > 3600:
        yield bad_value(f"{path}.stabilizationWindowSeconds", window, "must be less than or equal to 3600")
    yield from one_of(rules, "selectPolicy", ("Disabled", "Max", "Min"), path)
    policies = rules.get("policies") or []
    if not policies:
        yield required(f"{path}.policies", "must specify at least one Policy")
    for i, policy in enumerate(policies):
        at, period = f"{path}.policies[{i}]", policy.get("periodSeconds", 0)
        if policy.get("type") not in ("Pods", "Percent"):
            yield unsupported(f"{at}.type", policy.get("type", ""), ("Percent", "Pods"))
        if policy.get("value", 0) <= 0:
            yield bad_value(f"{at}.value", policy.get("value", 0), "must be greater than zero")
        if period <= 0:
            yield bad_value(f"{at}.periodSeconds", period, "must be greater than zero")
        if period > 1800:
            yield bad_value(f"{at}.periodSeconds", period, "must be less than or equal to 1800")
