"""Pods as their owners describe them: which object has which pod template, which serve, and which ask for GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from harness.inspection.seen import Seen, dig, items, labels_of, mapping, text, texts, whole
from harness.kube.port import Json
from harness.spec.document import KeyPath

GPU_RESOURCE = re.compile(
    r"(nvidia\.com/(gpu|mig-)|amd\.com/gpu|gpu\.intel\.com/|habana\.ai/|google\.com/tpu|aws\.amazon\.com/neuron)"
)
RUNS_ON = (
    "Deployment",
    "StatefulSet",
    "ReplicaSet",
    "DaemonSet",
    "Rollout",
    "LeaderWorkerSet",
    "RayCluster",
    "RayService",
)
"""Kinds whose pods run until somebody ends them; those of a Job end by themselves."""
DESCRIBING = (*RUNS_ON, "Job", "CronJob", "JobSet")
"""Kinds with a pod template that is known here."""
_TEMPLATE: KeyPath = ("spec", "template")
DEFAULT_GRACE_S = 30
"""``terminationGracePeriodSeconds`` where none is written (kubernetes v1.37 pkg/apis/core/v1/defaults.go)."""
_SLEEP = re.compile(r"(?:^|[\s;&|])sleep\s+(\d+(?:\.\d+)?)([smh]?)(?=$|[\s;&|])")
_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Workload:
    """One pod template of one object; ``at`` is where the template stands (empty for a bare Pod)."""

    object: Seen
    at: KeyPath
    replicas: int | None
    """As written; None where it is not, or where the kind has no such thing."""
    group_size: int = 1
    """Pods of one replica."""

    @property
    def template(self) -> Json:
        return mapping(self.object.data, *self.at)

    @property
    def pod_spec(self) -> Json:
        return mapping(self.template, "spec")

    @property
    def spec_at(self) -> KeyPath:
        return (*self.at, "spec")

    @property
    def labels(self) -> dict[str, str]:
        return labels_of(self.template, "metadata", "labels")

    @property
    def annotations(self) -> dict[str, str]:
        return labels_of(self.template, "metadata", "annotations")

    @property
    def namespace(self) -> str:
        return self.object.namespace

    @cached_property
    def containers(self) -> list[tuple[int, Json]]:
        return items(self.pod_spec, "containers")

    def container_at(self, index: int) -> KeyPath:
        return (*self.spec_at, "containers", index)

    @property
    def grace_s(self) -> int:
        written = whole(self.pod_spec, "terminationGracePeriodSeconds")
        return DEFAULT_GRACE_S if written is None else written

    @cached_property
    def gpu_containers(self) -> list[tuple[int, Json]]:
        return [(i, c) for i, c in self.containers if gpus_of(c) or items(c, "resources", "claims")]

    @property
    def asks_for_gpus(self) -> bool:
        return bool(self.gpu_containers)

    @property
    def main(self) -> tuple[int, Json]:
        """The container that serves: the one with the GPU."""
        return self.gpu_containers[0] if self.gpu_containers else (self.containers or [(0, {})])[0]

    @property
    def prestop_s(self) -> float | None:
        """How long the serving container's preStop sleeps; 0.0 for one whose length cannot be read, None for none."""
        return prestop_s(self.main[1])


def gpus_of(container: Json) -> dict[str, str]:
    """Devices it asks for, by resource, as written."""
    found = {}
    for part in ("requests", "limits"):
        for name in mapping(container, "resources", part):
            if isinstance(name, str) and GPU_RESOURCE.match(name):
                found[name] = text(container, "resources", part, name)
    return {name: amount for name, amount in found.items() if amount != "0"}


def prestop_s(container: Json) -> float | None:
    hook = dig(container, "lifecycle", "preStop")
    if not isinstance(hook, dict) or not hook:
        return None
    slept = dig(hook, "sleep", "seconds")
    if isinstance(slept, int | float) and not isinstance(slept, bool):
        return float(slept)
    command = " ".join(texts(hook, "exec", "command"))
    return sum(float(amount) * _UNITS_S[unit] for amount, unit in _SLEEP.findall(command))


def workloads_of(seen: Seen) -> Iterator[Workload]:
    """Those that it describes; none where another object made it."""
    data, kind = seen.data, seen.kind
    if seen.owner():
        return
    if kind == "Pod":
        yield Workload(seen, (), None)
    elif kind in ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Rollout", "Job"):
        if not mapping(data, *_TEMPLATE):
            return
        yield Workload(seen, _TEMPLATE, whole(data, "spec", "parallelism" if kind == "Job" else "replicas"))
    elif kind == "CronJob":
        yield Workload(seen, ("spec", "jobTemplate", "spec", "template"), None)
    elif kind == "LeaderWorkerSet":
        group: Json = mapping(data, "spec", "leaderWorkerTemplate")
        size, led = whole(group, "size") or 1, bool(mapping(group, "leaderTemplate"))
        for part, pods in (("leaderTemplate", 1), ("workerTemplate", size - led)):
            if mapping(group, part):
                yield Workload(seen, ("spec", "leaderWorkerTemplate", part), whole(data, "spec", "replicas"), pods)
    elif kind in ("RayCluster", "RayService"):
        base: KeyPath = ("spec",) if kind == "RayCluster" else ("spec", "rayClusterConfig")
        yield Workload(seen, (*base, "headGroupSpec", "template"), 1)
        for i, group in items(data, *base, "workerGroupSpecs"):
            yield Workload(seen, (*base, "workerGroupSpecs", i, "template"), whole(group, "replicas"))
    elif kind == "JobSet":
        for i, job in items(data, "spec", "replicatedJobs"):
            at = ("spec", "replicatedJobs", i, "template", "spec", "template")
            yield Workload(seen, at, whole(job, "template", "spec", "parallelism"), whole(job, "replicas") or 1)
