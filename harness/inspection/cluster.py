"""Objects of a running cluster, by reading alone. What may not be read is told, and nothing is said of its absence."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from harness.errors import BadInput, TargetError, Where
from harness.faults.permissions import Need, rbac_objects
from harness.inspection.objects import Known, Objects
from harness.inspection.seen import Seen, dig, items, mapping, text
from harness.inspection.workloads import DESCRIBING
from harness.kube import port
from harness.kube.http import HttpKube
from harness.kube.port import ApiError, Json, NotFound, Resource

NAME = "gpu-harness-inspect"
_AT_ONCE = 6
BUILT_IN: tuple[Resource, ...] = (
    port.NODE, port.POD, port.SERVICE, port.DEPLOYMENT, port.STATEFUL_SET, port.REPLICA_SET, port.HPA, port.PDB,
    Resource("apps", "v1", "daemonsets", "DaemonSet", True),
    Resource("batch", "v1", "jobs", "Job", True), Resource("batch", "v1", "cronjobs", "CronJob", True),
    Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False),
    Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False),
    Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True),
)  # fmt: skip
"""In the version that rules know. One that the server does not have (an alpha API, an older server) is not there."""
OF_CRDS: tuple[tuple[str, str, str, bool], ...] = (
    ("keda.sh", "scaledobjects", "ScaledObject", True),
    ("keda.sh", "scaledjobs", "ScaledJob", True),
    ("autoscaling.k8s.io", "verticalpodautoscalers", "VerticalPodAutoscaler", True),
    ("llmd.ai", "variantautoscalings", "VariantAutoscaling", True),
    ("nvidia.com", "dynamographdeployments", "DynamoGraphDeployment", True),
    ("nvidia.com", "dynamographdeploymentscalingadapters", "DynamoGraphDeploymentScalingAdapter", True),
    ("autoscaling.alibabacloud.com", "cronhorizontalpodautoscalers", "CronHorizontalPodAutoscaler", True),
    ("karpenter.sh", "nodepools", "NodePool", False),
    ("karpenter.sh", "nodeclaims", "NodeClaim", False),
    ("autoscaling.x-k8s.io", "provisioningrequests", "ProvisioningRequest", True),
    ("cluster.x-k8s.io", "machinedeployments", "MachineDeployment", True),
    ("cluster.x-k8s.io", "machinepools", "MachinePool", True),
    ("scheduling.x-k8s.io", "podgroups", "PodGroup", True),
    ("scheduling.volcano.sh", "podgroups", "PodGroup", True),
    ("scheduling.run.ai", "podgroups", "PodGroup", True),
    ("scheduling.run.ai", "queues", "Queue", False),
    ("scheduler.grove.io", "podgangs", "PodGang", True),
    ("kueue.x-k8s.io", "clusterqueues", "ClusterQueue", False),
    ("kueue.x-k8s.io", "localqueues", "LocalQueue", True),
    ("leaderworkerset.x-k8s.io", "leaderworkersets", "LeaderWorkerSet", True),
    ("jobset.x-k8s.io", "jobsets", "JobSet", True),
    ("ray.io", "rayclusters", "RayCluster", True),
    ("ray.io", "rayservices", "RayService", True),
    ("argoproj.io", "rollouts", "Rollout", True),
    ("gateway.networking.k8s.io", "gateways", "Gateway", True),
    ("gateway.networking.k8s.io", "httproutes", "HTTPRoute", True),
    ("inference.networking.k8s.io", "inferencepools", "InferencePool", True),
    ("inference.networking.x-k8s.io", "inferencepools", "InferencePool", True),
)  # fmt: skip
"""Group, plural, kind, and whether namespaced; read in the version that the server prefers."""
_CA_STATUS = ("cluster-autoscaler-status", "kube-system")


def needs(namespace: str | None) -> tuple[Need, ...]:
    """What reading takes: of one namespace, or of all."""
    crds = (Resource(group, "v1", plural, kind, scoped) for group, plural, kind, scoped in OF_CRDS)
    return (
        *(Need(r, ("list",), namespace=namespace if r.namespaced else None) for r in (*BUILT_IN, *crds)),
        Need(port.CONFIG_MAP, ("get",), namespace=_CA_STATUS[1], name=_CA_STATUS[0]),
    )


def rbac(namespace: str | None, account_namespace: str) -> list[Json]:
    """A service account that may read what an inspection reads, and do nothing else."""
    return rbac_objects(needs(namespace), account_namespace, NAME)


def kubeconfig_path(given: Path | None, context: str | None = None) -> Path:
    """As kubectl finds it; of a list in KUBECONFIG, the first that has the context, or, where none is named, a current
    one."""
    if given is not None:
        return given
    named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    there = [path for path in named or [Path.home() / ".kube" / "config"] if path.is_file()]
    found = next((path for path in there if _has_context(path, context)), there[0] if there else None)
    if found is None:
        raise BadInput(
            "no manifests were named, and there is no kubeconfig", where=Where("--kubeconfig"),
            hint="gpu-harness inspect FILES…, or --kubeconfig FILE",
        )  # fmt: skip
    return found


def _has_context(path: Path, context: str | None) -> bool:
    try:
        raw = yaml.safe_load(path.read_text())
    except (OSError, ValueError, yaml.YAMLError):
        return False
    if context is None:
        return bool(text(raw, "current-context"))
    return any(text(one, "name") == context for _, one in items(raw, "contexts"))


@dataclass(slots=True)
class _Reading:
    kube: HttpKube
    namespace: str | None
    seen: list[Seen]
    blind: set[str]
    notes: list[str]
    one_by_one: asyncio.Semaphore


def read_cluster(
    kubeconfig: Path, context: str | None, namespace: str | None, known: Known
) -> tuple[Objects, tuple[str, ...]]:
    """All of one namespace (None: of all), and what holds for the whole cluster. TargetError where nothing answers."""
    return asyncio.run(read_live(kubeconfig, context, namespace, known))


async def read_live(
    kubeconfig: Path, context: str | None, namespace: str | None, known: Known
) -> tuple[Objects, tuple[str, ...]]:
    """The same within a loop."""
    async with HttpKube(kubeconfig, context, NAME) as kube:
        try:
            version = await kube.raw("/version")
            groups = await kube.raw("/apis")
        except ConnectionError as error:
            raise TargetError(f"the cluster of {kubeconfig} does not answer: {error}") from error
        except ApiError as error:
            raise TargetError(f"the cluster of {kubeconfig} refuses to be read: {error}") from error
        reading = _Reading(
            kube, namespace, [Seen(version | {"kind": "Version"})], set(), [], asyncio.Semaphore(_AT_ONCE)
        )
        preferred = {g["name"]: text(g, "preferredVersion", "version") for g in groups.get("groups") or []}
        wanted = [r for r in BUILT_IN if not r.group or r.group in preferred]
        wanted += [Resource(g, preferred[g], plural, kind, ns) for g, plural, kind, ns in OF_CRDS if g in preferred]
        try:
            await asyncio.gather(*(_list(reading, resource) for resource in wanted), _autoscaler_status(reading))
        except ConnectionError as error:
            raise TargetError(f"the cluster of {kubeconfig} stopped answering: {error}") from error
    seen = tuple(sorted(_not_twice(reading.seen), key=lambda s: (s.kind, s.ref)))
    return Objects(seen, live=True, known=known, blind=frozenset(reading.blind)), tuple(sorted(reading.notes))


async def _list(reading: _Reading, resource: Resource) -> None:
    async with reading.one_by_one:
        try:
            found = await reading.kube.list(resource, reading.namespace if resource.namespaced else None)
        except NotFound:
            return
        except ApiError as error:
            reading.blind.add(resource.kind)
            reading.notes.append(f"{resource.plural}.{resource.group or 'core'} could not be read: {error.message}")
            return
    reading.seen += [Seen(item) for item in found.items]


async def _autoscaler_status(reading: _Reading) -> None:
    try:
        reading.seen.append(Seen({"kind": "ConfigMap"} | await reading.kube.get(port.CONFIG_MAP, *_CA_STATUS)))
    except ApiError:
        return  # not there, or not ours to read: it is for the inventory only


def _not_twice(seen: Iterable[Seen]) -> list[Seen]:
    """Without pods and sets that a kind we read stands for. Of pods that some other kind made, one for each owner is
    kept, as if nobody had made it: budgets select it all the same."""
    found: list[Seen] = []
    of_others: set[str] = set()
    for one in seen:
        owner = one.owner()
        if one.kind not in ("Pod", "ReplicaSet") or not owner:
            found.append(one)
        elif one.kind == "Pod" and text(owner, "kind") not in (*DESCRIBING, "Node"):
            uid = text(owner, "uid")
            if uid not in of_others and dig(one.data, "metadata", "deletionTimestamp") is None:
                of_others.add(uid)
                metadata = {k: v for k, v in mapping(one.data, "metadata").items() if k != "ownerReferences"}
                found.append(Seen(one.data | {"metadata": metadata}))
    return found
