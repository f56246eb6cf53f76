"""What autoscalers go by: figures that do not follow the load, and figures that are not there when it matters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.inspection.hpa import metrics_of, scale_down_of
from harness.inspection.objects import Objects, target_name
from harness.inspection.rule import Rule, Severity, Sighting
from harness.inspection.seen import Seen, items, mapping, text, whole
from harness.kube.port import Json
from harness.spec.document import KeyPath

_LOOKS_AT = ("HorizontalPodAutoscaler", "ScaledObject")
DUTY_CYCLE = re.compile(
    r"DCGM_FI_DEV_GPU_UTIL|DCGM_FI_PROF_(GR_ENGINE|SM|PIPE_TENSOR)_ACTIVE|accelerator[/_:]duty_cycle|\bduty_cycle\b|"
    r"nvidia_smi_utilization_gpu|gpu[_.-]?util(ization|isation)?(_|-|\b)|nvidia_gpu_duty_cycle|gpu_busy_percent|"
    r"habanalabs_utilization",
    re.IGNORECASE,
)
GPU_MEMORY = re.compile(
    r"DCGM_FI_DEV_FB_(USED|FREE)\w*|accelerator[/_:]memory_used|nvidia_smi_(utilization_)?memory\w*|"
    r"gpu_mem(ory)?(_|\b)|nvidia_gpu_memory\w*",
    re.IGNORECASE,
)
_OF_PODS = re.compile(r"\b(vllm|sglang|tgi|trtllm|nv|DCGM_FI)[:_][A-Za-z0-9_:]+")
_METRIC_NAME = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]*(?::[A-Za-z0-9_:]+|_[A-Za-z0-9_:]+)(?![A-Za-z0-9_:]|\s*\()")
"""Of a query: functions, which have a bracket after them, are none."""
_NOT_NAMES = re.compile(
    r"""\{[^}]*\}|"[^"]*"|'[^']*'|\[[^\]]*\]|\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)|"""
    r"\bgroup_(left|right)\b",
)
_TRIGGER_KEYS = (
    "query",
    "metricName",
    "filter",
    "valueLocation",
    "nrql",
    "expression",
    "metricsQuery",
    "metric",
    "queries",
)
"""Where the triggers of KEDA 2.21 name what they read."""
FALSE = ("0", "f", "F", "false", "False", "FALSE")
"""What KEDA reads as false (Go's strconv.ParseBool)."""


def asked(scaler: Seen) -> Iterator[tuple[KeyPath, str]]:
    """Each metric of an autoscaler: where it stands, and its name or query."""
    if scaler.kind == "HorizontalPodAutoscaler":
        yield from ((metric.at, metric.name) for metric in metrics_of(scaler) if metric.name and not metric.is_resource)
    for index, trigger in items(scaler.data, "spec", "triggers"):
        for key in _TRIGGER_KEYS:
            if words := text(trigger, "metadata", key):
                yield ("spec", "triggers", index, "metadata", key), words
                break


def _on(pattern: re.Pattern[str], objects: Objects) -> Iterator[Sighting]:
    for scaler in objects.of(*_LOOKS_AT):
        if scaler.owner():
            continue  # KEDA's own: its ScaledObject is told
        for at, words in asked(scaler):
            names = re.sub(r"\{[^}]*\}", "", words)  # labels of a query say which series, not what they measure
            if found := pattern.search(names):
                yield Sighting(scaler, at, f"it scales on {_whole_word(names, found)}")


def _whole_word(words: str, found: re.Match[str]) -> str:
    start, end = found.start(), found.end()
    while start and (words[start - 1].isalnum() or words[start - 1] in "_:/."):
        start -= 1
    while end < len(words) and (words[end].isalnum() or words[end] in "_:/."):
        end += 1
    return words[start:end]


def _duty_cycle(objects: Objects) -> Iterator[Sighting]:
    return _on(DUTY_CYCLE, objects)


def _memory(objects: Objects) -> Iterator[Sighting]:
    return _on(GPU_MEMORY, objects)


def _blind_at_zero(objects: Objects) -> Iterator[Sighting]:
    for hpa in objects.of("HorizontalPodAutoscaler"):
        if whole(hpa.data, "spec", "minReplicas") != 0 or hpa.owner():
            continue
        read = metrics_of(hpa)
        if not any(m.type in ("External", "Object") and not _OF_PODS.match(m.name) for m in read):
            told = dict.fromkeys(f"{m.type} {m.name}" if m.type in ("External", "Object") else m.type for m in read)
            said = f"minReplicas: 0, and its metrics are of its own pods ({', '.join(told) or 'none'})"
            yield Sighting(hpa, ("spec", "minReplicas"), said)
    for scaled in objects.of_group("sh", "ScaledObject"):
        idle = whole(scaled.data, "spec", "idleReplicaCount") == 0
        key = "idleReplicaCount" if idle else "minReplicaCount"
        least = whole(scaled.data, "spec", key)
        triggers = [trigger for _, trigger in items(scaled.data, "spec", "triggers")]
        if (least or 0) != 0 or not triggers or not all(_from_own_pods(trigger) for trigger in triggers):
            continue
        written = f"{key}: 0" if least == 0 else "minReplicaCount is not written, so it is 0"
        names = ", ".join(dict.fromkeys(text(t, "metadata", "query") or text(t, "type") for t in triggers))
        at: KeyPath = ("spec", key)
        yield Sighting(scaled, at, f"{written}, and all that could wake it is a figure of its own pods: {names}")


def _from_own_pods(trigger: dict[str, object]) -> bool:
    """Whether nothing of what it reads is there while there are no pods."""
    kind = text(trigger, "type")
    if kind in ("cpu", "memory"):
        return True
    if kind != "prometheus":
        return False
    names = _METRIC_NAME.findall(_NOT_NAMES.sub(" ", text(trigger, "metadata", "query")))
    return bool(names) and all(_OF_PODS.match(name) for name in names)


def _empty_is_zero(objects: Objects) -> Iterator[Sighting]:
    servers = {(w.object.kind, w.object.name, w.namespace) for w in objects.gpu_servers}
    for scaled in objects.of_group("sh", "ScaledObject"):
        if (*target_name(scaled), scaled.namespace) not in servers:
            continue
        for index, trigger in items(scaled.data, "spec", "triggers"):
            metadata = mapping(trigger, "metadata")
            if text(trigger, "type") == "prometheus" and text(metadata, "ignoreNullValues") not in FALSE:
                at: KeyPath = ("spec", "triggers", index, "metadata", "ignoreNullValues")
                written = text(metadata, "ignoreNullValues")
                yield Sighting(scaled, at, f"ignoreNullValues is {written or 'not written, so it is true'}")


def _no_window(objects: Objects) -> Iterator[Sighting]:
    servers = {(w.object.kind, w.object.name, w.namespace) for w in objects.gpu_servers}
    for scaler in objects.of(*_LOOKS_AT):
        if scaler.owner() or (*target_name(scaler), scaler.namespace) not in servers:
            continue
        at, rules = scale_down_of(scaler) if scaler.kind == "HorizontalPodAutoscaler" else _scale_down_of_keda(scaler)
        if whole(rules, "stabilizationWindowSeconds") == 0 and text(rules, "selectPolicy") != "Disabled":
            yield Sighting(scaler, at, "stabilizationWindowSeconds: 0 for scaling down")


def _scale_down_of_keda(scaled: Seen) -> tuple[KeyPath, Json]:
    at: KeyPath = ("spec", "advanced", "horizontalPodAutoscalerConfig", "behavior", "scaleDown")
    return (*at, "stabilizationWindowSeconds"), mapping(scaled.data, *at)


HPA_ON_GPU_DUTY_CYCLE = Rule(
    "hpa-on-gpu-duty-cycle", Severity.ERROR,
    "The autoscaler goes by the duty cycle of GPUs, which is near 100 % whenever anything runs on them.",
    "requests that wait or run per replica: vllm:num_requests_waiting, or the gateway's queue",
    "scale on the queue",
    "One request keeps a GPU as busy by this figure as a hundred do, so replicas come late or never go.",
    "DCGM documentation of DCGM_FI_DEV_GPU_UTIL; experiments/autoscaler-on-gpu-duty-cycle.yaml shows it", _LOOKS_AT,
    _duty_cycle,
)  # fmt: skip
HPA_ON_GPU_MEMORY = Rule(
    "hpa-on-gpu-memory", Severity.ERROR,
    "The autoscaler goes by the memory of GPUs, which vLLM takes whole at its start and never gives back.",
    "requests that wait or run per replica: vllm:num_requests_waiting, or the gateway's queue",
    "scale on the queue",
    "The figure says nothing of the load, and its gaps froze an autoscaler for twenty minutes.",
    "kubernetes-sigs/prometheus-adapter#644; experiments/autoscaler-on-gpu-memory.yaml shows it", _LOOKS_AT, _memory,
)  # fmt: skip
SCALE_FROM_ZERO_BLIND = Rule(
    "scale-from-zero-blind", Severity.ERROR,
    "At zero replicas nothing can wake the workload: its figures come from pods that are not there.",
    "a figure of what stands before the pods, such as requests that the gateway holds; or a floor of 1",
    "scale on the gateway's queue, or keep one replica",
    "Pods that are not there say nothing; requests waited at the gateway until they timed out.",
    "kedacore/keda#7527, #2042; experiments/to-zero-and-back.yaml has it right", _LOOKS_AT, _blind_at_zero,
)  # fmt: skip
EMPTY_METRIC_READ_AS_ZERO = Rule(
    "empty-metric-read-as-zero", Severity.WARNING,
    "KEDA takes an empty answer of Prometheus for 0, and scales in under load when metrics are missing.",
    'ignoreNullValues: "false", with a fallback',
    'set ignoreNullValues: "false" and spec.fallback',
    "A gap in the metrics scaled a loaded model server to zero, without an error anywhere.",
    "llm-d/llm-d#1981; experiments/metrics-hole-read-as-zero.yaml shows it", ("ScaledObject",), _empty_is_zero,
)  # fmt: skip
NO_SCALE_DOWN_WINDOW = Rule(
    "no-scale-down-window", Severity.WARNING,
    "Replicas go at the first quiet moment, and come back minutes later with their model to load.",
    "stabilizationWindowSeconds above the time that a replica takes to load its model (the default is 300)",
    "leave the window at its default, or set it above the load",
    "Replicas of a model server flapped, each time paying the load again.",
    "llm-d/llm-d-workload-variant-autoscaler#1352, #1248", _LOOKS_AT, _no_window,
)  # fmt: skip

METRICS = (
    HPA_ON_GPU_DUTY_CYCLE, HPA_ON_GPU_MEMORY, SCALE_FROM_ZERO_BLIND, EMPTY_METRIC_READ_AS_ZERO, NO_SCALE_DOWN_WINDOW,
)  # fmt: skip
