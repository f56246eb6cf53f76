"""What is there: everything that decides over replicas, nodes, placement and traffic, before any judgement of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from harness.inspection.objects import Objects, target_name
from harness.inspection.rules.metrics import asked
from harness.inspection.seen import Seen, dig, items, labels_of, mapping, text, whole
from harness.inspection.workloads import GPU_RESOURCE, Workload, gpus_of

AUTOSCALERS = {
    "HorizontalPodAutoscaler": "autoscaling", "ScaledObject": "keda.sh", "ScaledJob": "keda.sh",
    "VerticalPodAutoscaler": "autoscaling.k8s.io", "VariantAutoscaling": "llmd.ai",
    "DynamoGraphDeployment": "nvidia.com", "DynamoGraphDeploymentScalingAdapter": "nvidia.com",
    "CronHorizontalPodAutoscaler": "autoscaling.alibabacloud.com", "NodePool": "karpenter.sh",
    "ProvisioningRequest": "autoscaling.x-k8s.io",
}  # fmt: skip
GANGS = {
    "PodGroup": ("scheduling.k8s.io", "scheduling.x-k8s.io", "scheduling.volcano.sh", "scheduling.run.ai"),
    "Workload": ("scheduling.k8s.io", "kueue.x-k8s.io"), "PodGang": ("scheduler.grove.io",),
    "ClusterQueue": ("kueue.x-k8s.io",), "LocalQueue": ("kueue.x-k8s.io",), "Queue": ("scheduling.run.ai",),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io",), "JobSet": ("jobset.x-k8s.io",), "RayCluster": ("ray.io",),
    "RayService": ("ray.io",),
}  # fmt: skip
_GATEWAYS = ("Gateway", "HTTPRoute", "InferencePool", "InferenceObjective")
_COUNT = re.compile(r"[0-9]{1,9}")
_CA_STATUS = "cluster-autoscaler-status"
_NATIVE = {
    "scheduling.k8s.io": "native", "scheduling.x-k8s.io": "coscheduling", "scheduling.volcano.sh": "Volcano",
    "scheduling.run.ai": "KAI",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    section: str
    ref: str
    detail: str


def inventory(objects: Objects) -> Iterator[Item]:
    """In the order of sections. What is there many times over (claims, pools' nodes) is counted."""
    yield from _versions(objects)
    yield from (Item("model servers", w.object.ref, _server(w)) for w in objects.gpu_servers)
    yield from _autoscalers(objects)
    yield from _gangs(objects)
    for budget in objects.of("PodDisruptionBudget"):
        allowed = whole(budget.data, "status", "disruptionsAllowed")
        now = "" if allowed is None else f"; {allowed} may go now"
        keys = ("maxUnavailable", "minAvailable")
        said = ", ".join(f"{k} {text(budget.data, 'spec', k)}" for k in keys if text(budget.data, "spec", k))
        yield Item("disruption budgets", budget.ref, f"{said or 'says nothing'}{now}")
    yield from _devices(objects)
    for gateway in objects.of(*_GATEWAYS):
        yield Item("gateways", gateway.ref, _gateway(gateway))


def _versions(objects: Objects) -> Iterator[Item]:
    kubelets = Counter(text(node.data, "status", "nodeInfo", "kubeletVersion") for node in objects.of("Node"))
    for version, count in sorted(kubelets.items()):
        yield Item("versions", "kubelet", f"{version or 'unknown'} on {count} nodes")
    for server in objects.of("Version"):  # what the cluster's source puts there: no object of Kubernetes
        yield Item("versions", "API server", text(server.data, "gitVersion"))


def _server(workload: Workload) -> str:
    _, container = workload.main
    gpus = ", ".join(f"{amount} {name}" for name, amount in gpus_of(container).items()) or "GPUs by claim"
    slept_s = workload.prestop_s
    stop = "no preStop" if slept_s is None else f"preStop {slept_s:g} s" if slept_s else "a preStop of its own"
    replicas = "" if workload.replicas is None else f"replicas {workload.replicas}, "
    return f"{replicas}{gpus} each; grace {workload.grace_s} s, {stop}; image {text(container, 'image')}"


def _autoscalers(objects: Objects) -> Iterator[Item]:
    for kind, group in AUTOSCALERS.items():
        for seen in objects.of_group(group, kind):
            yield Item("autoscalers", seen.ref, _autoscaler(seen))
    if claims := list(objects.of_group("karpenter.sh", "NodeClaim")):
        yield Item("autoscalers", "NodeClaim", f"{len(claims)} nodes are Karpenter's")
    for found in objects.of("ConfigMap", "Deployment"):
        if found.kind == "ConfigMap" and found.name == _CA_STATUS:
            yield Item("autoscalers", found.ref, "Cluster Autoscaler runs here")
        elif "cluster-autoscaler" in " ".join(text(c, "image") for _, c in items(_pod(found), "containers")):
            yield Item("autoscalers", found.ref, "Cluster Autoscaler")


def _pod(seen: Seen) -> dict[str, object]:
    return mapping(seen.data, "spec", "template", "spec")


def _autoscaler(seen: Seen) -> str:
    made_by = f", made by {text(seen.owner(), 'kind')} {text(seen.owner(), 'name')}" if seen.owner() else ""
    if seen.kind in ("HorizontalPodAutoscaler", "ScaledObject"):
        keys = ("minReplicas", "maxReplicas") if seen.kind[0] == "H" else ("minReplicaCount", "maxReplicaCount")
        default = "1" if seen.kind[0] == "H" else "0"
        least, most = text(seen.data, "spec", keys[0]) or default, text(seen.data, "spec", keys[1]) or "?"
        metrics = ", ".join(words for _, words in asked(seen)) or "its resources"
        return f"{' '.join(target_name(seen))}, {least} to {most}, on {metrics}{made_by}"
    if seen.kind == "VerticalPodAutoscaler":
        mode = text(seen.data, "spec", "updatePolicy", "updateMode") or "Auto"
        return f"{' '.join(target_name(seen, 'spec', 'targetRef'))}, updateMode {mode}"
    if seen.kind == "NodePool":
        policy = text(seen.data, "spec", "disruption", "consolidationPolicy") or "WhenEmptyOrUnderutilized"
        limits = ", ".join(f"{k} {v}" for k, v in mapping(seen.data, "spec", "limits").items())
        return f"Karpenter, {policy}{f', up to {limits}' if limits else ''}"
    if seen.kind == "ProvisioningRequest":
        return text(seen.data, "spec", "provisioningClassName")
    return " ".join(target_name(seen)) if mapping(seen.data, "spec", "scaleTargetRef") else ""


def _gangs(objects: Objects) -> Iterator[Item]:
    for kind, groups in GANGS.items():
        found = [seen for seen in objects.of(kind) if seen.group in groups]
        if kind == "Workload" and len(found) > 5:
            yield Item("gangs and queues", "Workload", f"{len(found)} of {found[0].group}")
            continue
        for seen in found:
            yield Item("gangs and queues", seen.ref, _gang(seen))


def _gang(seen: Seen) -> str:
    if seen.kind == "PodGroup":
        least = text(seen.data, "spec", "minMember") or text(seen.data, "spec", "schedulingPolicy", "gang", "minCount")
        return f"{_NATIVE[seen.group]}, at least {least or '?'}"
    if seen.kind == "LeaderWorkerSet":
        size = text(seen.data, "spec", "leaderWorkerTemplate", "size") or "1"
        return f"{text(seen.data, 'spec', 'replicas') or '1'} groups of {size}"
    return seen.group


def _devices(objects: Objects) -> Iterator[Item]:
    for daemons in objects.of("DaemonSet"):
        images = " ".join(text(c, "image") for _, c in items(_pod(daemons), "containers"))
        if any(word in f"{images} {daemons.name}" for word in ("device-plugin", "dra-driver", "gpu-operator", "dcgm")):
            yield Item("devices", daemons.ref, images)
    slices = Counter(text(s.data, "spec", "driver") for s in objects.of("ResourceSlice"))
    yield from (Item("devices", "ResourceSlice", f"{count} of {driver}") for driver, count in sorted(slices.items()))
    for device_class in objects.of("DeviceClass"):
        yield Item("devices", device_class.ref, "for DRA")
    allocatable: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    for node in objects.of("Node"):
        for name, amount in mapping(node.data, "status", "allocatable").items():
            if GPU_RESOURCE.match(name) and _COUNT.fullmatch(str(amount)):
                allocatable[name] += int(amount)
                nodes[name] += 1
    for name, total in sorted(allocatable.items()):
        yield Item("devices", name, f"{total} allocatable on {nodes[name]} of {len(list(objects.of('Node')))} nodes")


def _gateway(seen: Seen) -> str:
    if seen.kind == "InferencePool":
        selector = mapping(seen.data, "spec", "selector")
        labels = labels_of(selector, "matchLabels") or labels_of(selector)
        failure = text(seen.data, "spec", "endpointPickerRef", "failureMode") or "FailClose"
        return f"pods with {', '.join(f'{k}={v}' for k, v in labels.items())}; without its picker {failure}"
    if seen.kind == "HTTPRoute":
        backends = [
            f"{text(b, 'kind') or 'Service'} {text(b, 'name')}"
            for _, rule in items(seen.data, "spec", "rules")
            for _, b in items(rule, "backendRefs")
        ]
        return f"to {', '.join(dict.fromkeys(backends)) or 'nothing'}"
    return text(dig(seen.data, "spec"), "gatewayClassName")
