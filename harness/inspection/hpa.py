"""What an HPA goes by, whichever version of its API it is written in: autoscaling/v1 has all but the CPU target in
annotations (kubernetes v1.37 pkg/apis/autoscaling/v1/conversion.go)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from harness.inspection.seen import Seen, items, mapping, text
from harness.kube.port import Json
from harness.spec.document import KeyPath

METRICS = "autoscaling.alpha.kubernetes.io/metrics"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
_V1 = "autoscaling/v1"
_CPU_TARGET = "targetCPUUtilizationPercentage"
_OF_RESOURCES = ("Resource", "ContainerResource")


@dataclass(frozen=True, slots=True)
class Metric:
    """One that an HPA goes by: where it stands, its type as written, and its name; empty for one that has none."""

    at: KeyPath
    type: str
    name: str

    @property
    def is_resource(self) -> bool:
        """Of the pods' own CPU or memory, which the kubelet measures."""
        return self.type in _OF_RESOURCES


def metrics_of(hpa: Seen) -> list[Metric]:
    if hpa.api_version != _V1:
        return [_metric(index, metric) for index, metric in items(hpa.data, "spec", "metrics")]
    found = [_of_annotation(metric) for _, metric in items(_annotated(hpa, METRICS))]
    if text(hpa.data, "spec", _CPU_TARGET):
        found.append(Metric(("spec", _CPU_TARGET), "Resource", "cpu"))
    return found


def scale_down_of(hpa: Seen) -> tuple[KeyPath, Json]:
    """Where its window for scaling down stands, and the rules it stands among, in the words of autoscaling/v2."""
    if hpa.api_version != _V1:
        at: KeyPath = ("spec", "behavior", "scaleDown")
        return (*at, "stabilizationWindowSeconds"), mapping(hpa.data, *at)
    rules = mapping(_annotated(hpa, BEHAVIOR), "scaledown")
    words = {"stabilizationwindowseconds": "stabilizationWindowSeconds", "selectpolicy": "selectPolicy"}
    return ("metadata", "annotations", BEHAVIOR), {words.get(key, key): value for key, value in rules.items()}


def _metric(index: int, metric: Json) -> Metric:
    kind = text(metric, "type")
    part = kind[:1].lower() + kind[1:]
    at: KeyPath = ("spec", "metrics", index, part)
    if kind in _OF_RESOURCES:
        return Metric((*at, "name"), kind, text(metric, part, "name"))
    return Metric((*at, "metric", "name"), kind, text(metric, part, "metric", "name"))


def _of_annotation(metric: Json) -> Metric:
    kind = text(metric, "type")
    key = "name" if kind in _OF_RESOURCES else "metricname"
    return Metric(("metadata", "annotations", METRICS), kind, text(metric, kind.lower(), key))


def _annotated(hpa: Seen, annotation: str) -> object:
    """What stands in an annotation, its keys in small letters, as Go reads them; nothing for what is no JSON: the
    server passes over it in silence."""
    try:
        return _folded(json.loads(hpa.annotations.get(annotation, "null")))
    except (ValueError, RecursionError):
        return None


def _folded(value: object) -> object:
    if isinstance(value, dict):
        return {key.lower(): _folded(item) for key, item in value.items()}
    return [_folded(item) for item in value] if isinstance(value, list) else value
