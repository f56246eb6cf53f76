"""Who writes the number of replicas: one writer decides, or several undo each other's decisions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from harness.inspection.hpa import metrics_of
from harness.inspection.objects import Objects, target_name
from harness.inspection.rule import Rule, Severity, Sighting
from harness.inspection.rules.metrics import FALSE
from harness.inspection.seen import Seen, dig, items, mapping, read_selector, text, whole
from harness.kube.port import Json

_AUTOSCALERS = ("HorizontalPodAutoscaler", "ScaledObject", "CronHorizontalPodAutoscaler")
Target = tuple[str, str, str]
"""Kind, name, namespace."""
SCALERS = re.compile(r"kube-controller-manager|keda|controller-manager|autoscaler|wva|gpu-harness|fakes", re.IGNORECASE)
"""Field managers that write replicas because it is their work."""
_GITOPS = re.compile(
    r"argocd|argo-cd|flux|kustomize-controller|helm|fleet|kubectl|kapp|pulumi|terraform", re.IGNORECASE
)
_PAUSED, _PAUSED_AT = "autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas"
_TAKES_OVER = "scaledobject.keda.sh/transfer-hpa-ownership"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def scaled_by(objects: Objects) -> dict[Target, list[Seen]]:
    """The autoscalers that decide for each target. An HPA that KEDA made or takes over is KEDA's, not a second one; a
    ScaledObject that is paused decides nothing."""
    found: dict[Target, list[Seen]] = {}
    taken = {(scaled.namespace, name) for scaled in objects.of("ScaledObject") if (name := _takes_over(scaled))}
    for scaler in objects.of(*_AUTOSCALERS):
        kind, name = target_name(scaler)
        made_by = text(scaler.owner(), "kind")
        if scaler.kind == "ScaledObject" and is_paused(scaler):
            continue
        if scaler.kind == "HorizontalPodAutoscaler" and (scaler.namespace, scaler.name) in taken:
            continue
        if name and kind != "HorizontalPodAutoscaler" and made_by not in ("ScaledObject", "InferenceService"):
            known = found.setdefault((kind, name, scaler.namespace), [])
            if scaler.ref not in [other.ref for other in known]:  # variants of one object, in several files
                known.append(scaler)
    return found


def is_paused(scaled: Seen) -> bool:
    """KEDA takes its HPA away and writes nothing more, after the replicas of paused-replicas (keda v2.21
    scaledobject_types.go: what is no boolean counts as true)."""
    told = scaled.annotations
    return _PAUSED_AT in told or (_PAUSED in told and told[_PAUSED] not in FALSE)


def _takes_over(scaled: Seen) -> str:
    """The name of the HPA that KEDA makes its own (keda v2.21 scaledobject_webhook.go); empty for none."""
    if scaled.annotations.get(_TAKES_OVER) != "true":
        return ""
    return text(scaled.data, "spec", "advanced", "horizontalPodAutoscalerConfig", "name")


def _two_autoscalers(objects: Objects) -> Iterator[Sighting]:
    for (kind, name, _), scalers in scaled_by(objects).items():
        if len(scalers) > 1:
            others = ", ".join(scaler.ref for scaler in scalers[:-1])
            yield Sighting(
                scalers[-1], ("spec", "scaleTargetRef"), f"{kind} {name} is scaled by it and by {others}",
                others=tuple(scalers[:-1]),
            )  # fmt: skip
    yield from _beside_vpa(objects)


_OWN_RESOURCES = ("cpu", "memory")


def _beside_vpa(objects: Objects) -> Iterator[Sighting]:
    """Of CPU and memory: each changes what the other one measures."""
    scaled = scaled_by(objects)
    for vpa in objects.of("VerticalPodAutoscaler"):
        kind, name = target_name(vpa, "spec", "targetRef")
        mode = text(vpa.data, "spec", "updatePolicy", "updateMode") or "Auto"
        for scaler in scaled.get((kind, name, vpa.namespace), ()):
            if mode != "Off" and (shared := _resource_of(scaler)):
                yield Sighting(
                    scaler, ("spec", "scaleTargetRef"),
                    f"it scales {kind} {name} on {shared}, whose request {vpa.ref} changes", others=(vpa,),
                )  # fmt: skip


def _resource_of(scaler: Seen) -> str:
    """The resource of its own pods that an autoscaler goes by; CPU, where an HPA names nothing."""
    if scaler.kind == "HorizontalPodAutoscaler":
        metrics = metrics_of(scaler)
        names = [metric.name for metric in metrics if metric.is_resource] if metrics else ["cpu"]
    else:
        names = [text(trigger, "type") for _, trigger in items(scaler.data, "spec", "triggers")]
    return next((name for name in names if name in _OWN_RESOURCES), "")


def _overlapping(objects: Objects) -> Iterator[Sighting]:
    scaled = []
    for scalers in scaled_by(objects).values():
        target = objects.target_of(scalers[0])
        selector = read_selector(dig(target.data, "spec", "selector")) if target else None
        if target is not None and selector is not None and selector.requirements:
            scaled.append((scalers[0], target, selector))
    for scaler, target, selector in scaled:
        for other_scaler, other, _ in scaled:
            if other.ref == target.ref or other.namespace != target.namespace:
                continue
            for workload in objects.workloads:
                if workload.object is other and selector.matches(workload.labels):
                    yield Sighting(
                        target, ("spec", "selector"),
                        f"its selector takes in the pods of {other.ref} too, and each has an autoscaler "
                        f"({scaler.ref}, {other_scaler.ref})",
                        others=(scaler, other_scaler),
                    )  # fmt: skip


def _replicas_in_manifest(objects: Objects) -> Iterator[Sighting]:
    if objects.live:
        return
    scaled = scaled_by(objects)
    for seen in objects.of("Deployment", "StatefulSet", "LeaderWorkerSet", "Rollout", "ReplicaSet"):
        scalers = scaled.get((seen.kind, seen.name, seen.namespace))
        replicas = whole(seen.data, "spec", "replicas")
        if scalers and replicas is not None:
            yield Sighting(
                seen, ("spec", "replicas"), f"replicas: {replicas} is written, and {scalers[0].ref} decides it too",
                others=tuple(scalers),
            )  # fmt: skip


def _second_writer(objects: Objects) -> Iterator[Sighting]:
    scaled = scaled_by(objects)
    for seen in objects.of("Deployment", "StatefulSet", "LeaderWorkerSet", "Rollout", "ReplicaSet"):
        scalers = scaled.get((seen.kind, seen.name, seen.namespace))
        if not scalers:
            continue
        writer = next(_writers(seen), None) or _applied(seen)
        if writer is not None:
            yield Sighting(
                seen, ("spec", "replicas"), f"{writer}, and {scalers[0].ref} decides it too", others=tuple(scalers)
            )


def _writers(seen: Seen) -> Iterator[str]:
    for _, entry in items(seen.data, "metadata", "managedFields"):
        manager = text(entry, "manager")
        if dig(entry, "fieldsV1", "f:spec", "f:replicas") is None or text(entry, "subresource"):
            continue
        if _GITOPS.search(manager) and not SCALERS.search(manager.replace("kustomize-controller", "")):
            yield f"the field manager {manager} wrote spec.replicas last ({text(entry, 'operation')})"


def _applied(seen: Seen) -> str | None:
    """What the next ``kubectl apply`` of the same file will write again."""
    replicas = whole(last_applied(seen), "spec", "replicas")
    return None if replicas is None else f"the manifest applied last has replicas: {replicas}"


def last_applied(seen: Seen) -> Json:
    """The manifest that ``kubectl apply`` wrote last, with what the API server dropped; empty where none did."""
    try:
        return mapping(json.loads(seen.annotations.get(_LAST_APPLIED, "{}")))
    except (ValueError, RecursionError):
        return {}


def _vpa_restarts(objects: Objects) -> Iterator[Sighting]:
    servers = {(w.object.kind, w.object.name, w.namespace) for w in objects.gpu_servers}
    for vpa in objects.of("VerticalPodAutoscaler"):
        mode = text(vpa.data, "spec", "updatePolicy", "updateMode") or "Auto"
        target = (*target_name(vpa, "spec", "targetRef"), vpa.namespace)
        if target in servers and mode in ("Auto", "Recreate"):
            at = ("spec", "updatePolicy", "updateMode")
            yield Sighting(vpa, at, f"updateMode {mode} on {target[0]} {target[1]}, whose pods hold GPUs")


TWO_AUTOSCALERS = Rule(
    "two-autoscalers-on-one-target", Severity.ERROR,
    "Two autoscalers write the replicas of one workload, or both stop.",
    "one autoscaler for each workload, with all its metrics",
    "delete one, and give its metrics to the other",
    "Two HPAs on the same pods both stopped with AmbiguousSelector; with KEDA beside an HPA each undid the other.",
    "kedacore/keda#5825, #4683, kubernetes/kubernetes#122059", _AUTOSCALERS, _two_autoscalers,
)  # fmt: skip
OVERLAPPING_SELECTORS = Rule(
    "autoscaled-pods-overlap", Severity.ERROR,
    "Two autoscaled workloads have pods in common, so both autoscalers stop (AmbiguousSelector).",
    "selectors that no other workload's pods match",
    "add a label that tells the workloads apart to both selectors and templates",
    "Both HPAs reported AmbiguousSelector and scaled nothing any more.",
    "kubernetes/kubernetes#112011, #122059, kedacore/keda#5825", ("Deployment", "StatefulSet"), _overlapping,
)  # fmt: skip
REPLICAS_IN_MANIFEST = Rule(
    "replicas-beside-autoscaler", Severity.WARNING,
    "Each apply of the manifest sets the replicas back, whatever the autoscaler had decided.",
    "no spec.replicas in the manifest",
    "leave replicas out (first apply it without, as the documentation of the HPA says, or it falls to 1)",
    "Whoever wrote last won: an edit put the replicas back under load.",
    "kubernetes.io, Horizontal Pod Autoscaling: migrating Deployments; ai-dynamo/dynamo#4420",
    ("Deployment", "StatefulSet", "LeaderWorkerSet", "Rollout", "ReplicaSet"), _replicas_in_manifest,
)  # fmt: skip
SECOND_WRITER = Rule(
    "second-writer-of-replicas", Severity.ERROR,
    "Somebody besides the autoscaler writes the replicas: GitOps, a chart, or a person.",
    "no spec.replicas where the target is described (Argo CD: ignoreDifferences; Flux, Helm: leave it out)",
    "take replicas out of what is applied",
    "Whoever wrote last won: an edit put the replicas back under load.",
    "ai-dynamo/dynamo#4420; experiments/one-writer-decides.yaml shows it",
    ("Deployment", "StatefulSet", "LeaderWorkerSet", "Rollout", "ReplicaSet"), _second_writer, live_only=True,
)  # fmt: skip
VPA_RESTARTS_GPU_SERVERS = Rule(
    "vpa-restarts-gpu-server", Severity.WARNING,
    "VPA evicts model servers to change their CPU and memory, each time with its streams and its load of the model.",
    'updateMode: "Initial", "InPlace" or "Off"',
    "let it change pods in place, or only when they start",
    "The CPU target of VPA 1.7.0 swings by 30 %, and each swing evicts.",
    "kubernetes/autoscaler#10022", ("VerticalPodAutoscaler",), _vpa_restarts,
)  # fmt: skip

WRITERS = (
    TWO_AUTOSCALERS, OVERLAPPING_SELECTORS, REPLICAS_IN_MANIFEST, SECOND_WRITER, VPA_RESTARTS_GPU_SERVERS,
)  # fmt: skip
