"""When pods of a model server say that they are ready, and when they are taken for dead."""

from __future__ import annotations

from collections.abc import Iterator

from harness.inspection.objects import Objects
from harness.inspection.rule import Rule, Severity, Sighting
from harness.inspection.seen import mapping, text, whole
from harness.inspection.workloads import MODEL_LOAD, RUNS_ON, Workload
from harness.kube.port import Json

LEAST_LOAD_S = 60.0
"""Where nobody says how long: import, weights and warm-up of vLLM take no less for any model worth a GPU."""


def load_s(objects: Objects, workload: Workload) -> tuple[float, str]:
    """Seconds from the container's start to the first answer, and who says so."""
    if (said_s := workload.said_s(MODEL_LOAD)) is not None:
        return said_s, f"its annotation {MODEL_LOAD}"
    if objects.known.model_load_s is not None:
        return objects.known.model_load_s, "--model-load-s"
    return LEAST_LOAD_S, "the least that any takes; say more with --model-load-s"


def patience_s(probe: Json) -> float:
    """Seconds from the container's start until the kubelet gives it up, at the earliest (defaults of v1.37: every 10 s,
    three failures)."""
    delay, period = whole(probe, "initialDelaySeconds") or 0, whole(probe, "periodSeconds") or 10
    return delay + period * ((whole(probe, "failureThreshold") or 3) - 1)


def _no_readiness(objects: Objects) -> Iterator[Sighting]:
    for workload in objects.gpu_servers:
        if workload.object.kind.startswith("Ray"):
            continue  # KubeRay gives its containers probes of their own
        place, container = workload.main
        if not mapping(container, "readinessProbe") and not mapping(container, "startupProbe"):
            at = (*place, "readinessProbe")
            name = text(container, "name")
            yield Sighting(workload.object, at, f"container {name} has neither readinessProbe nor startupProbe")


def _liveness_before_load(objects: Objects) -> Iterator[Sighting]:
    for workload in objects.gpu_servers:
        place, container = workload.main
        probe = mapping(container, "livenessProbe")
        if not probe or mapping(container, "startupProbe"):
            continue
        needed_s, who = load_s(objects, workload)
        if patience_s(probe) < needed_s:
            yield Sighting(
                workload.object, (*place, "livenessProbe"),
                f"it is given up {patience_s(probe):g} s after its start, but loading takes {needed_s:g} s ({who})",
            )  # fmt: skip


def _startup_too_short(objects: Objects) -> Iterator[Sighting]:
    for workload in objects.gpu_servers:
        place, container = workload.main
        probe = mapping(container, "startupProbe")
        if not probe:
            continue
        needed_s, who = load_s(objects, workload)
        if patience_s(probe) < needed_s:
            yield Sighting(
                workload.object, (*place, "startupProbe"),
                f"it is given up {patience_s(probe):g} s after its start, but loading takes {needed_s:g} s ({who})",
            )  # fmt: skip


NO_READINESS_PROBE = Rule(
    "no-readiness-probe", Severity.ERROR,
    "The pod says Ready as soon as its process runs, minutes before the model can answer.",
    "readinessProbe: {httpGet: {path: /health, port: 8000}}",
    "add a readinessProbe that the model server answers only once it serves",
    "Requests were routed to servers that still loaded their model, and hung or got 503.",
    "vllm-project/production-stack#619, modelplaneai/modelplane#102, gateway-api-inference-extension#558", RUNS_ON,
    _no_readiness,
)  # fmt: skip
LIVENESS_BEFORE_LOAD = Rule(
    "liveness-before-load", Severity.ERROR,
    "The livenessProbe kills the server while it loads its model, again and again.",
    "a startupProbe of failureThreshold x periodSeconds above the longest load; liveness begins after it",
    "add a startupProbe",
    "vLLM opens its port only after the load, so every earlier probe fails.",
    "vllm-project/production-stack#619", RUNS_ON, _liveness_before_load,
)  # fmt: skip
STARTUP_PROBE_TOO_SHORT = Rule(
    "startup-probe-too-short", Severity.ERROR,
    "The startupProbe gives the server up before its model is loaded.",
    "failureThreshold x periodSeconds above the longest load, downloads included",
    "raise failureThreshold",
    "vLLM opens its port only after the load, so every earlier probe fails.",
    "vllm-project/production-stack#619", RUNS_ON, _startup_too_short,
)  # fmt: skip

PROBES = (NO_READINESS_PROBE, LIVENESS_BEFORE_LOAD, STARTUP_PROBE_TOO_SHORT)
