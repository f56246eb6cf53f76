"""Applies the manifests an experiment names, and waits until its workload serves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from harness.errors import BadInput, TargetError
from harness.kube.port import DEPLOYMENT, NODE_POOL, REAL_ONLY, RESOURCES, AlreadyExists, ApiError, Json, Kube, Resource
from harness.spec.document import read_documents
from harness.spec.manifest import load_manifest

BY_KIND: dict[tuple[str, str], Resource] = {(r.api_version, r.kind): r for r in (*RESOURCES, *REAL_ONLY)}


def read_manifests(files: Iterable[Path], more: Sequence[Resource] = ()) -> list[tuple[Resource, Json]]:
    """Every object of every file, in order; ``more`` are kinds that this target has beside those it always has.
    BadInput names file, line and what would be right."""
    known = BY_KIND | {(r.api_version, r.kind): r for r in more}
    found: list[tuple[Resource, Json]] = []
    for file in files:
        for obj, document in zip(load_manifest(file), read_documents(file), strict=True):
            resource = known.get((str(obj["apiVersion"]), str(obj["kind"])))
            if resource is None:
                kinds = ", ".join(sorted(f"{kind} ({version})" for version, kind in known))
                what = f"{obj['kind']} of {obj['apiVersion']} is no kind that this target has"
                raise document.mistake(("kind",), what, f"it has: {kinds}")
            found.append((resource, obj))
    return found


def refused_by_the_embedded_api(files: Iterable[Path], node_pools: Collection[str]) -> BadInput | None:
    """The first object of a kind that it does not have, as the mistake that it is there; or a NodePool that says more
    than its own, ``node_pools``, which it makes itself and goes by."""
    for file in files:
        for obj, document in zip(load_manifest(file), read_documents(file), strict=True):
            if BY_KIND.get((str(obj["apiVersion"]), str(obj["kind"]))) in REAL_ONLY:
                what = f"{obj['kind']} of {obj['apiVersion']} is no kind that the embedded API has"
                return document.mistake(("kind",), what, "run it with --target controlplane")
            if obj["kind"] == NODE_POOL.kind and (why := _not_its_own(obj, node_pools)):
                return document.mistake(("kind",), why, "run it with --target controlplane")
    return None


def _not_its_own(pool: Json, known: Collection[str]) -> str:
    name, spec = str(pool["metadata"]["name"]), pool.get("spec", {})
    expires = spec.get("template", {}).get("spec", {}).get("expireAfter", "720h")
    after = spec.get("disruption", {}).get("consolidateAfter", "0s")
    if name not in known:
        return (
            f"no pool of the world names the NodePool {name} (nodepool: {name}), and the embedded cluster has no other"
        )
    if (expires, after) != ("Never", "Never"):
        return (
            f"the embedded cluster's own NodePool {name} disrupts nothing by itself, and this one has expireAfter "
            f"{expires} and consolidateAfter {after}"
        )
    return ""


PROCESSES_TIMEOUT_S = 900
"""Where containers are real processes: two model servers that load at once on two cores take minutes."""
ADMISSION_LAG_S = 5.0
"""Admission plugins look things up in caches: for a moment the API server refuses a Pod of a PriorityClass, or one in a
namespace, that it has just created (403, seen with 1.37)."""


async def apply(kube: Kube, objects: Sequence[tuple[Resource, Json]]) -> None:
    """Creates each object; one that is there already stays as it is."""
    for resource, obj in objects:
        namespace = obj["metadata"].get("namespace", "default") if resource.namespaced else None
        try:
            with contextlib.suppress(AlreadyExists):
                await create_once_admitted(kube, resource, obj, namespace)
        except ApiError as error:
            raise TargetError(f"the API server refused {resource.kind} {obj['metadata']['name']}: {error}") from error


async def create_once_admitted(
    kube: Kube, resource: Resource, obj: Json, namespace: str | None, within_s: float = ADMISSION_LAG_S
) -> None:
    """ApiError where it is refused for another reason, or for longer than ``within_s``."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    while True:
        try:
            await kube.create(resource, obj, namespace)
            return
        except ApiError as error:
            if error.status != 403 or loop.time() > deadline:
                raise
        await asyncio.sleep(0.1)


async def wait_until_available(kube: Kube, namespace: str, selector: str, timeout_s: float) -> None:
    """Until every Deployment of the selector has all its replicas available, or TargetError after ``timeout_s``."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while True:
        deployments = (await kube.list(DEPLOYMENT, namespace, label_selector=selector)).items
        waiting = [d for d in deployments if d.get("status", {}).get("availableReplicas", 0) < d["spec"]["replicas"]]
        if deployments and not waiting:
            return
        if loop.time() > deadline:
            seen = ", ".join(map(_availability, deployments)) or f"no Deployment matches {selector}"
            raise TargetError(
                f"the workload was not available after {timeout_s:.0f} s: {seen}",
                hint="look at its pods: do the pools have enough GPUs for the replicas?",
            )
        await asyncio.sleep(0.1)


def _availability(deployment: Json) -> str:
    available = deployment.get("status", {}).get("availableReplicas", 0)
    return f"{deployment['metadata']['name']} has {available} of {deployment['spec']['replicas']}"
