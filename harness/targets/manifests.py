"""Applies the manifests an experiment names, and waits until its workload serves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from harness.errors import BadInput, TargetError, Where
from harness.kube.port import DEPLOYMENT, RESOURCES, AlreadyExists, ApiError, Json, Kube, Resource

BY_KIND: dict[tuple[str, str], Resource] = {(r.api_version, r.kind): r for r in RESOURCES}


def read_manifests(files: Iterable[Path]) -> list[tuple[Resource, Json]]:
    """Every object of every file, in order. BadInput names file, line and what would be right."""
    found: list[tuple[Resource, Json]] = []
    for file in files:
        try:
            text = file.read_text()
            nodes = [n for n in yaml.compose_all(text) if n is not None]
            objects = [o for o in yaml.safe_load_all(text) if o is not None]
        except OSError as error:
            raise BadInput(f"cannot read this manifest: {error.strerror}", where=Where(str(file))) from error
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark else None
            raise BadInput(f"not valid YAML: {error}".splitlines()[0], where=Where(str(file), line)) from error
        for node, obj in zip(nodes, objects, strict=True):
            found.append(_known(obj, Where(str(file), node.start_mark.line + 1)))
    return found


def _known(obj: object, where: Where) -> tuple[Resource, Json]:
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict) or not obj["metadata"].get("name"):
        raise BadInput("this is no Kubernetes object: apiVersion, kind and metadata.name are needed", where=where)
    key = (str(obj.get("apiVersion")), str(obj.get("kind")))
    resource = BY_KIND.get(key)
    if resource is None:
        kinds = ", ".join(sorted(f"{kind} ({version})" for version, kind in BY_KIND))
        raise BadInput(f"kind {key[1]} of {key[0]} is not one this target has", where=where, hint=f"it has: {kinds}")
    return resource, obj


async def apply(kube: Kube, objects: Sequence[tuple[Resource, Json]]) -> None:
    """Creates each object; one that is there already stays as it is."""
    for resource, obj in objects:
        namespace = obj["metadata"].get("namespace", "default") if resource.namespaced else None
        try:
            with contextlib.suppress(AlreadyExists):
                await kube.create(resource, obj, namespace)
        except ApiError as error:
            raise TargetError(f"the API server refused {resource.kind} {obj['metadata']['name']}: {error}") from error


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
