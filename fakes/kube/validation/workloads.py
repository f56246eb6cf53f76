"""Deployments, ReplicaSets and disruption budgets."""

from __future__ import annotations

from collections.abc import Iterator

from fakes.kube.selectors import match_label_selector
from fakes.kube.status import Cause, bad_value, forbidden_field, required, unsupported
from fakes.kube.validation.amounts import NOT_NEGATIVE, count_or_percent, not_negative, number_of
from fakes.kube.validation.metadata import labels_of, selector_of
from fakes.kube.validation.pods import one_of, pod_spec
from harness.kube.port import Json


def deployment(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    yield from not_negative(spec, "replicas", "spec")
    yield from _selection(spec)
    yield from _template(spec)
    yield from _strategy(spec["strategy"])
    for field in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        yield from not_negative(spec, field, "spec")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield bad_value("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def replica_set(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    yield from not_negative(spec, "replicas", "spec")
    yield from not_negative(spec, "minReadySeconds", "spec")
    yield from _selection(spec)
    yield from _template(spec)


def _selection(spec: Json) -> Iterator[Cause]:
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
        return
    problems = list(selector_of(selector, "spec.selector"))
    yield from problems
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield bad_value("spec.selector", selector, "empty selector is invalid for deployment")
    if problems:
        yield bad_value("spec.selector", selector, "invalid label selector")


def _template(spec: Json) -> Iterator[Cause]:
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    selector = spec.get("selector")
    is_empty = selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")
    is_wrong = bool(selector) and any(True for _ in selector_of(selector or {}, ""))
    if not is_empty and not is_wrong and not match_label_selector(selector, labels or {}):
        yield bad_value("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from labels_of(labels or {}, "spec.template.labels")
    pods = template.get("spec") or {}
    yield from pod_spec(pods, "spec.template.spec")
    policy = pods.get("restartPolicy", "Always")
    if policy != "Always" and policy in ("OnFailure", "Never"):
        yield unsupported("spec.template.spec.restartPolicy", policy, ("Always",))


def _strategy(strategy: Json) -> Iterator[Cause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    path = "spec.strategy.rollingUpdate"
    if kind == "Recreate":
        if rolling is not None:
            yield forbidden_field(path, "may not be specified when strategy `type` is 'Recreate'")
    elif kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": rolling}
        yield unsupported("spec.strategy", shown, ("Recreate", "RollingUpdate"))
    elif rolling is not None:
        yield from count_or_percent(rolling, "maxUnavailable", path, at_most_all=False)
        yield from count_or_percent(rolling, "maxSurge", path, at_most_all=False)
        if number_of(rolling.get("maxUnavailable")) == 0 and number_of(rolling.get("maxSurge")) == 0:
            text = "may not be 0 when `maxSurge` is 0"
            yield bad_value(f"{path}.maxUnavailable", rolling["maxUnavailable"], text)
        percent = rolling.get("maxUnavailable")
        if isinstance(percent, str) and (number_of(percent) or 0) > 100:
            yield bad_value(f"{path}.maxUnavailable", percent, "must not be greater than 100%")


def selector_change(new: Json, old: Json) -> Iterator[Cause]:
    before, after = old["spec"].get("selector"), new["spec"].get("selector")
    if before != after:
        yield bad_value("spec.selector", after, "field is immutable")


_COUNTS = ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
           "unavailableReplicas", "terminatingReplicas", "collisionCount")  # fmt: skip


def deployment_status(obj: Json) -> Iterator[Cause]:
    status = obj.get("status") or {}
    for field in _COUNTS:
        if status.get(field, 0) < 0:
            yield bad_value(f"status.{field}", status[field], NOT_NEGATIVE)
    whole = status.get("replicas", 0)
    for field in ("updatedReplicas", "readyReplicas", "availableReplicas"):
        if status.get(field, 0) > whole:
            yield bad_value(f"status.{field}", status.get(field, 0), "cannot be greater than status.replicas")
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        yield bad_value("status.availableReplicas", status["availableReplicas"], "cannot be greater than readyReplicas")


def budget(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        shown = {
            "MinAvailable": spec["minAvailable"],
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec["maxUnavailable"],
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield bad_value("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    yield from count_or_percent(spec, "minAvailable", "spec", at_most_all=True)
    yield from count_or_percent(spec, "maxUnavailable", "spec", at_most_all=True)
    yield from selector_of(spec.get("selector") or {}, "spec.selector")
    yield from one_of(spec, "unhealthyPodEvictionPolicy", ("AlwaysAllow", "IfHealthyBudget"), "spec")
