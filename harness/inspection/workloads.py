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
DESCRIBING = (*RUNS_ON, "Job", "CronJob", "JobSet", "RayJob", "ScaledJob")
"""Kinds with a pod template that is known here."""
_TEMPLATE: KeyPath = ("spec", "template")
_RAY_AT: dict[str, KeyPath] = {
    "RayCluster": ("spec",), "RayService": ("spec", "rayClusterConfig"), "RayJob": ("spec", "rayClusterSpec"),
}  # fmt: skip
DEFAULT_GRACE_S = 30
"""``terminationGracePeriodSeconds`` where none is written (kubernetes v1.37 pkg/apis/core/v1/defaults.go)."""
_SLEEP = re.compile(r"(?:^|[\s;&|/(.])sleep[\s(]+(\d+(?:\.\d+)?)([smh]?)(?=$|[\s;&|)])")
"""Of a shell (``/bin/sleep 15``), or of Python (``time.sleep(15)``)."""
_UNITS_S = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER = re.compile(r"\d{1,9}(\.\d+)?")
_DURATION_PART = re.compile(r"(\d{1,9}(?:\.\d+)?)(ms|h|m|s)")
_DURATION = re.compile(rf"({_DURATION_PART.pattern})+")


LONGEST_STREAM = "gpu-harness.dev/longest-stream-s"
"""Annotation of a workload or its pod template: the longest stream that its users have, in seconds."""
MODEL_LOAD = "gpu-harness.dev/model-load-s"
"""The same: from the container's start to the model's first answer."""


def seconds(written: str) -> float | None:
    """``90``, or a duration as Kubernetes writes it (``1m30s``); None for what is neither."""
    if _NUMBER.fullmatch(written):
        return float(written)
    if not _DURATION.fullmatch(written):
        return None
    return sum(float(amount) * _UNITS_S[unit] for amount, unit in _DURATION_PART.findall(written))


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
        """Those of its pods: as written, and as the controllers that make them add."""
        return labels_of(self.template, "metadata", "labels") | added_labels(self.object, self.at)

    @property
    def annotations(self) -> dict[str, str]:
        return labels_of(self.template, "metadata", "annotations")

    def said_s(self, annotation: str) -> float | None:
        """Seconds that an annotation of its pods, or else of its own, says; None where none does."""
        for said in (self.annotations, self.object.annotations):
            if (found := seconds(said.get(annotation, ""))) is not None:
                return found
        return None

    @property
    def namespace(self) -> str:
        return self.object.namespace

    @cached_property
    def containers(self) -> list[tuple[int, Json]]:
        return items(self.pod_spec, "containers")

    @property
    def all_containers(self) -> list[tuple[KeyPath, Json]]:
        """Those that only prepare, too, each with its place."""
        parts = ("initContainers", "containers")
        return [((*self.spec_at, part, i), c) for part in parts for i, c in items(self.pod_spec, part)]

    @cached_property
    def running(self) -> list[tuple[KeyPath, Json]]:
        """Those that run as long as the pod does, each with its place: its containers, then its sidecars, which stand
        among the initContainers."""
        own = [((*self.spec_at, "containers", i), c) for i, c in self.containers]
        preparing = [((*self.spec_at, "initContainers", i), c) for i, c in items(self.pod_spec, "initContainers")]
        return own + [(at, c) for at, c in preparing if c.get("restartPolicy") == "Always"]

    @property
    def grace_s(self) -> int:
        written = whole(self.pod_spec, "terminationGracePeriodSeconds")
        return DEFAULT_GRACE_S if written is None else written

    @cached_property
    def gpu_containers(self) -> list[tuple[KeyPath, Json]]:
        return [(at, c) for at, c in self.running if gpus_of(c) or items(c, "resources", "claims")]

    @property
    def asks_for_gpus(self) -> bool:
        return bool(self.gpu_containers)

    @property
    def main(self) -> tuple[KeyPath, Json]:
        """The container that serves, and its place: the one with the GPU."""
        nothing: tuple[KeyPath, Json] = ((*self.spec_at, "containers", 0), {})
        return next(iter(self.gpu_containers or self.running), nothing)

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


def asks_for_gpus_anywhere(value: object) -> bool:
    """Whether resources with a GPU stand anywhere in it."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            if gpus_of(found):
                return True
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found
    return False


def added_labels(seen: Seen, at: KeyPath) -> dict[str, str]:
    """What the controllers of the kind put on its pods besides (kubernetes v1.37 pkg/controller/job, KubeRay v1.6,
    LeaderWorkerSet v0.8, JobSet v0.11, Volcano v1.12)."""
    name = seen.name
    match seen.kind:
        case "Job" if seen.group == "batch.volcano.sh":
            return {"volcano.sh/job-name": name}
        case "Job":
            return {"job-name": name, "batch.kubernetes.io/job-name": name}
        case "LeaderWorkerSet":
            return {"leaderworkerset.sigs.k8s.io/name": name}
        case "JobSet":
            job = text(seen.data, *at[:3], "name") if len(at) > 3 else ""
            return {"jobset.sigs.k8s.io/jobset-name": name, "jobset.sigs.k8s.io/replicatedjob-name": job}
        case "RayCluster":
            head = "headGroupSpec" in at
            group = "headgroup" if head else text(seen.data, *at[:-1], "groupName")
            return {
                "ray.io/cluster": name, "ray.io/node-type": "head" if head else "worker", "ray.io/group": group,
                "ray.io/is-ray-node": "yes", "app.kubernetes.io/name": "kuberay",
                "app.kubernetes.io/created-by": "kuberay-operator",
            }  # fmt: skip
    return {}


ADDED_PER_POD = re.compile(
    r"(^|\.)(statefulset\.kubernetes\.io|apps\.kubernetes\.io|batch\.kubernetes\.io|leaderworkerset\.sigs\.k8s\.io|"
    r"jobset\.sigs\.k8s\.io|ray\.io|volcano\.sh)/|(^|-)pod-template-hash$|^controller-(uid|revision-hash)$"
)
"""Labels that controllers put on pods, with values that no manifest has."""


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
    elif kind == "Job" and seen.group == "batch.volcano.sh":
        for i, task in items(data, "spec", "tasks"):
            yield Workload(seen, ("spec", "tasks", i, "template"), whole(task, "replicas"))
    elif kind in ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Rollout", "Job"):
        if not mapping(data, *_TEMPLATE):
            return
        yield Workload(seen, _TEMPLATE, whole(data, "spec", "parallelism" if kind == "Job" else "replicas"))
    elif kind == "CronJob":
        job_at: KeyPath = ("spec", "jobTemplate", "spec")
        yield Workload(seen, (*job_at, "template"), whole(data, *job_at, "parallelism"))
    elif kind == "LeaderWorkerSet":
        group: Json = mapping(data, "spec", "leaderWorkerTemplate")
        size, led = whole(group, "size") or 1, bool(mapping(group, "leaderTemplate"))
        for part, pods in (("leaderTemplate", 1), ("workerTemplate", size - led)):
            if mapping(group, part):
                yield Workload(seen, ("spec", "leaderWorkerTemplate", part), whole(data, "spec", "replicas"), pods)
    elif kind == "ScaledJob":
        yield Workload(seen, ("spec", "jobTargetRef", "template"), whole(data, "spec", "jobTargetRef", "parallelism"))
    elif kind in _RAY_AT:
        base = _RAY_AT[kind]
        yield Workload(seen, (*base, "headGroupSpec", "template"), 1)
        for i, group in items(data, *base, "workerGroupSpecs"):
            hosts = whole(group, "numOfHosts") or 1
            yield Workload(seen, (*base, "workerGroupSpecs", i, "template"), whole(group, "replicas"), hosts)
    elif kind == "JobSet":
        for i, job in items(data, "spec", "replicatedJobs"):
            at = ("spec", "replicatedJobs", i, "template", "spec", "template")
            yield Workload(seen, at, whole(job, "template", "spec", "parallelism"), whole(job, "replicas") or 1)
