"""Second shapes of stored objects: events.k8s.io/v1 of core Events, autoscaling/v1 of HPAs (which are kept as v2).

As kubernetes v1.37 converts them (pkg/apis/events/v1/conversion.go, pkg/apis/autoscaling/v1/conversion.go). Objects are
never changed in place.
"""

from __future__ import annotations

import json
from typing import Any

from harness.kube.port import Json

_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_EVENT_BACK = {new: old for old, new in _EVENT_NAMES.items()}
_CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_CURRENT = "autoscaling.alpha.kubernetes.io/current-metrics"
_BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"


def event_outward(obj: Json) -> Json:
    return {_EVENT_NAMES.get(k, k): v for k, v in obj.items()} | {"apiVersion": "events.k8s.io/v1"}


def event_inward(obj: Json) -> Json:
    return {_EVENT_BACK.get(k, k): v for k, v in obj.items()} | {"apiVersion": "v1"}


def hpa_outward(obj: Json) -> Json:
    """The cpu target is a field of its own, everything else that v1 cannot say is an annotation."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    notes: Json = {}
    metrics, current = spec.pop("metrics", None) or [], status.pop("currentMetrics", None) or []
    rest = [m for m in metrics if not _is_cpu(m, "target")]
    if cpu := next((m for m in metrics if _is_cpu(m, "target")), None):
        spec["targetCPUUtilizationPercentage"] = cpu["resource"]["target"]["averageUtilization"]
    if rest:
        notes[_METRICS] = [_metric_outward(m, "target") for m in rest]
    if (usage := next((m for m in current if _is_cpu(m, "current")), None)) is not None:
        status["currentCPUUtilizationPercentage"] = usage["resource"]["current"]["averageUtilization"]
    if current:
        notes[_CURRENT] = [_metric_outward(m, "current") for m in current]
    if behavior := spec.pop("behavior", None):
        notes[_BEHAVIOR] = _capital(behavior)
    if conditions := status.pop("conditions", None):
        notes[_CONDITIONS] = conditions
    meta = dict(obj["metadata"])
    if notes:
        said = {k: json.dumps(v, separators=(",", ":")) for k, v in notes.items()}
        meta["annotations"] = (meta.get("annotations") or {}) | said
    status = {"currentReplicas": 0, "desiredReplicas": 0} | status
    return obj | {"apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status}


def hpa_inward(obj: Json) -> Json:
    spec, meta, status = dict(obj.get("spec") or {}), dict(obj.get("metadata") or {}), dict(obj.get("status") or {})
    notes = dict(meta.get("annotations") or {})
    said = {key: _said(notes.pop(key, None)) for key in (_METRICS, _CURRENT, _BEHAVIOR, _CONDITIONS)}
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    metrics = [_metric_inward(m) for m in said[_METRICS] or [] if isinstance(m, dict)]
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    if metrics:
        spec["metrics"] = metrics
    if isinstance(said[_BEHAVIOR], dict):
        spec["behavior"] = _small(said[_BEHAVIOR])
    if isinstance(said[_CONDITIONS], list):
        status["conditions"] = said[_CONDITIONS]
    status.pop("currentCPUUtilizationPercentage", None)
    meta.pop("annotations", None)
    if notes:
        meta["annotations"] = notes
    return obj | {"apiVersion": "autoscaling/v2", "metadata": meta, "spec": spec, "status": status}


def _said(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _is_cpu(metric: Json, side: str) -> bool:
    resource = metric.get("resource") or {}
    return (
        metric.get("type") == "Resource"
        and resource.get("name") == "cpu"
        and "averageUtilization" in (resource.get(side) or {})
    )


def _source(metric: Json) -> str:
    kind = str(metric.get("type", ""))
    return kind[:1].lower() + kind[1:]


def _metric_outward(metric: Json, side: str) -> Json:
    """v1 said target and metric name flat: ``targetAverageValue`` beside ``metricName``."""
    name = _source(metric)
    found = dict(metric.get(name) or {})
    amount = found.pop(side, None) or {}
    asked = found.pop("metric", None) or {}
    if asked:
        found["metricName"] = asked.get("name", "")
        if asked.get("selector"):
            found["metricSelector" if name == "external" else "selector"] = asked["selector"]
    if described := found.pop("describedObject", None):
        found["target"] = described
    for key, value in amount.items():
        if key != "type":
            found[f"{side}{key[0].upper()}{key[1:]}"] = value
    return {"type": metric.get("type", ""), name: found}


def _metric_inward(metric: Json) -> Json:
    name = _source(metric)
    flat = metric.get(name)
    if not isinstance(flat, dict):
        return metric
    amount: Json = {}
    found: Json = {}
    for key, value in flat.items():
        if key in ("targetAverageValue", "targetValue", "targetAverageUtilization"):
            amount[key[6].lower() + key[7:]] = value
        elif key == "metricName":
            found.setdefault("metric", {})["name"] = value
        elif key in ("selector", "metricSelector"):
            found.setdefault("metric", {})["selector"] = value
        elif key == "target":
            found["describedObject"] = value
        else:
            found[key] = value
    kinds = {"averageValue": "AverageValue", "value": "Value", "averageUtilization": "Utilization"}
    if amount:
        amount["type"] = kinds[next(iter(amount))]
    return {"type": metric.get("type", ""), name: found | {"target": amount}}


def _capital(value: Any) -> Any:
    """The annotation is the internal type as Go writes it: names begin with a capital."""
    if isinstance(value, dict):
        return {k[:1].upper() + k[1:]: _capital(v) for k, v in value.items()}
    return [_capital(v) for v in value] if isinstance(value, list) else value


def _small(value: Any) -> Any:
    if isinstance(value, dict):
        return {k[:1].lower() + k[1:]: _small(v) for k, v in value.items()}
    return [_small(v) for v in value] if isinstance(value, list) else value
