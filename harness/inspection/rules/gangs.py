"""Pods that must run together, or not at all; and how pods ask for the devices they share."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.inspection.objects import Objects
from harness.inspection.rule import Rule, Severity, Sighting
from harness.inspection.seen import Seen, items, mapping, text, whole
from harness.inspection.types import as_written_back
from harness.inspection.workloads import GPU_RESOURCE, Workload
from harness.spec.document import KeyPath

_MIN: dict[str, KeyPath] = {
    "scheduling.k8s.io": ("spec", "schedulingPolicy", "gang", "minCount"),
    "scheduling.x-k8s.io": ("spec", "minMember"),
    "scheduling.volcano.sh": ("spec", "minMember"),
    "scheduling.run.ai": ("spec", "minMember"),
}
"""By API group of a PodGroup: the fewest members that may run."""


def group_of(workload: Workload) -> str:
    """The name of the PodGroup that its pods belong to, whichever system's it is; empty for none."""
    return (
        text(workload.pod_spec, "schedulingGroup", "podGroupName")
        or workload.labels.get("scheduling.x-k8s.io/pod-group", "")
        or workload.annotations.get("scheduling.k8s.io/group-name", "")
        or workload.annotations.get("pod-group-name", "")
    )


def _larger_than_members(objects: Objects) -> Iterator[Sighting]:
    for group in objects.of("PodGroup"):
        at = _MIN.get(group.group, ())
        least = whole(group.data, *at) if at else None
        members = [w for w in objects.workloads if w.namespace == group.namespace and group_of(w) == group.name]
        members = objects.one_each(members, group)
        if least is None or not members or any(w.object.kind in ("CronJob", "DaemonSet") for w in members):
            continue
        pods = sum((1 if w.replicas is None else w.replicas) * w.group_size for w in members)
        if 0 < pods < least:
            names = ", ".join(dict.fromkeys(w.object.ref for w in members))
            yield Sighting(group, at, f"it needs {least} members, and {names} has {pods}")


def _group_not_there(objects: Objects) -> Iterator[Sighting]:
    groups = {(g.name, g.namespace) for g in objects.of("PodGroup")}
    for workload in objects.workloads:
        name = text(workload.pod_spec, "schedulingGroup", "podGroupName")
        if objects.live and name and (name, workload.namespace) not in groups:
            at = (*workload.spec_at, "schedulingGroup", "podGroupName")
            yield Sighting(workload.object, at, f"there is no PodGroup {workload.namespace}/{name}")


def _one_by_one(objects: Objects) -> Iterator[Sighting]:
    of_each: dict[int, list[Workload]] = {}
    for workload in objects.workloads:
        if workload.object.kind in _TOGETHER and workload.asks_for_gpus:
            of_each.setdefault(id(workload.object), []).append(workload)
    for workloads in of_each.values():
        seen = workloads[0].object
        if any(_placed_whole(w) for w in workloads) or _has_group(objects, seen):
            continue
        if (found := _TOGETHER[seen.kind](workloads)) is not None:
            at, said = found
            yield Sighting(seen, at, f"{said}, placed one by one by the default scheduler")


def _groups_of_lws(workloads: list[Workload]) -> tuple[KeyPath, str] | None:
    size = whole(workloads[0].object.data, "spec", "leaderWorkerTemplate", "size") or 1
    if size < 2 or not any(w.at[-1] == "workerTemplate" for w in workloads):
        return None
    return ("spec", "leaderWorkerTemplate", "size"), f"groups of {size} pods with GPUs"


def _hosts_of_ray(workloads: list[Workload]) -> tuple[KeyPath, str] | None:
    """Workers of Ray come and go alone, but for those that are one replica together."""
    for workload in workloads:
        if workload.group_size > 1:
            return (*workload.at[:-1], "numOfHosts"), f"groups of {workload.group_size} pods with GPUs"
    return None


def _all_of_ray_job(workloads: list[Workload]) -> tuple[KeyPath, str] | None:
    """Submitted when all pods of its cluster are ready (KubeRay v1.6 rayjob_controller.go)."""
    pods = 0
    for workload in workloads:
        least = whole(workload.object.data, *workload.at[:-1], "minReplicas") or 0
        pods += max(workload.replicas or 0, least) * workload.group_size
    return _hosts_of_ray(workloads) or _all(pods, workloads)


def _all_of_job_set(workloads: list[Workload]) -> tuple[KeyPath, str] | None:
    pods = [(1 if w.replicas is None else w.replicas) * w.group_size for w in workloads]
    jobs = [job for _, job in items(workloads[0].object.data, "spec", "replicatedJobs")]
    in_turn = any(text(before, "status") == "Complete" for job in jobs for _, before in items(job, "dependsOn"))
    return _all(max(pods) if in_turn else sum(pods), workloads)


def _all(pods: int, workloads: list[Workload]) -> tuple[KeyPath, str] | None:
    return (workloads[0].at, f"{pods} pods with GPUs that work together") if pods > 1 else None


_TOGETHER = {
    "LeaderWorkerSet": _groups_of_lws, "RayCluster": _hosts_of_ray, "RayService": _hosts_of_ray,
    "RayJob": _all_of_ray_job, "JobSet": _all_of_job_set,
}  # fmt: skip
"""Kinds of pods that need each other: which do, and where that stands."""
_QUEUE = "kueue.x-k8s.io/queue-name"
_ASKS_KUBERAY = ("ray.io/gang-scheduling-enabled", "volcano.sh/queue-name", "kai.scheduler/queue")
"""Labels of a Ray kind by which KubeRay gives its pods to a gang scheduler (v1.6 controllers/ray/batchscheduler)."""


def _placed_whole(workload: Workload) -> bool:
    seen = workload.object
    asks = seen.kind.startswith("Ray") and any(key in seen.labels for key in _ASKS_KUBERAY)
    queued = any(_QUEUE in labels for labels in (seen.labels, workload.labels))
    return bool(workload.pod_spec.get("schedulerName") or group_of(workload) or queued or asks)


def _has_group(objects: Objects, seen: Seen) -> bool:
    """Whether its operator made a PodGroup for it, or for the RayCluster that it made: a scheduler's name stands on
    their pods alone."""
    owners = {(seen.kind, seen.name)}
    for cluster in objects.of("RayCluster"):
        if (text(cluster.owner(), "kind"), text(cluster.owner(), "name")) == (seen.kind, seen.name):
            owners.add((cluster.kind, cluster.name))
    return any(
        group.namespace == seen.namespace and (text(ref, "kind"), text(ref, "name")) in owners
        for group in objects.of("PodGroup") for _, ref in items(group.data, "metadata", "ownerReferences")
    )  # fmt: skip


def _half_asked(objects: Objects) -> Iterator[Sighting]:
    for workload in objects.workloads:
        for place, container in workload.all_containers:
            asked, limits = mapping(container, "resources", "requests"), mapping(container, "resources", "limits")
            for name in dict.fromkeys([*asked, *limits]):
                if not isinstance(name, str) or not GPU_RESOURCE.match(name):
                    continue
                at: KeyPath = (*place, "resources")
                amount, limit = as_written_back(text(asked, name)), as_written_back(text(limits, name))
                if name not in limits:
                    yield Sighting(workload.object, (*at, "requests", name), f"{name} is requested without a limit")
                elif name in asked and amount != limit:
                    said = f"{name}: {amount} is requested, with a limit of {limit}"
                    yield Sighting(workload.object, (*at, "limits", name), said)
                elif not re.fullmatch(r"\d+[kMG]?", limit):
                    said = f"{name}: {limit} is no whole number of devices"
                    yield Sighting(workload.object, (*at, "limits", name), said)


GANG_LARGER_THAN_MEMBERS = Rule(
    "gang-larger-than-its-members", Severity.ERROR,
    "The group waits for more members than there are, so none of them ever runs.",
    "a minimum of at most the members' replicas",
    "lower the minimum, or raise the replicas",
    "Leaders held GPUs while their group waited for members that nobody would make.",
    "kubernetes-sigs/lws#167; kubernetes v1.37 gangscheduling: waiting for minCount pods from a gang", ("PodGroup",),
    _larger_than_members,
)  # fmt: skip
GROUP_NOT_THERE = Rule(
    "gang-without-its-group", Severity.ERROR,
    "The pods name a PodGroup that is not there, and wait for it.",
    "a PodGroup of that name in the pods' namespace",
    "create the PodGroup, or take schedulingGroup out",
    "The scheduler holds such pods back: waiting for pod's pod group to appear.",
    "kubernetes v1.37 pkg/scheduler/framework/plugins/gangscheduling", ("Deployment", "ReplicaSet", "Job", "Pod"),
    _group_not_there, live_only=True,
)  # fmt: skip
GANG_ONE_BY_ONE = Rule(
    "gang-placed-one-by-one", Severity.WARNING,
    "Nothing places the group as a whole: a part of it may hold GPUs and wait for the rest for ever.",
    "a gang scheduler (schedulerName and its group), a Kueue queue, or a PodGroup",
    "let a gang scheduler or Kueue place it",
    "Leaders were placed and their workers waited for ever; two half-placed groups blocked each other.",
    "kubernetes-sigs/lws#167, koordinator-sh/koordinator#872, ray-project/kuberay#5002",
    tuple(_TOGETHER), _one_by_one,
)  # fmt: skip
GPU_HALF_ASKED = Rule(
    "gpu-request-and-limit-differ", Severity.ERROR,
    "The API server refuses the pod: devices are whole, and a request must equal its limit.",
    'limits: {nvidia.com/gpu: "1"}',
    "write the limit; the request may be left out",
    "Its Deployment is taken, and its ReplicaSet fails to make a single pod.",
    "kubernetes v1.37 pkg/apis/core/validation: limit must be set for non overcommitable resources",
    ("Deployment", "StatefulSet", "DaemonSet", "Job", "Pod"), _half_asked,
)  # fmt: skip

GANGS = (GANG_LARGER_THAN_MEMBERS, GROUP_NOT_THERE, GANG_ONE_BY_ONE, GPU_HALF_ASKED)
