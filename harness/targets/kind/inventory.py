"""What an API server holds, and back to what it held at an earlier time.

Objects are told by what they are called and by what they want; their status is somebody else's business, and so is what
belongs to another object, for that goes with its owner.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Container, Iterable, Mapping
from typing import Protocol

from harness.errors import TargetError
from harness.kube.port import NAMESPACE, NODE, POD, ApiError, Json, Kube, NotFound, Resource
from harness.stack.addon_objects import API_SERVICE, MUTATING, VALIDATING

PASSING = frozenset(
    {
        "CSINode", "CertificateSigningRequest", "ComponentStatus", "ControllerRevision", "EndpointSlice", "Endpoints",
        "Event", "Lease", "LeaseCandidate", "Node",
    }
)  # fmt: skip
"""Kinds that come and go by themselves, or follow what others are: nothing is told by their names."""
FIRST = (API_SERVICE, MUTATING, VALIDATING)
"""An API that nobody answers for holds up the end of every namespace, and a webhook that of everything."""
LOOK_S = 0.3
Inventory = Mapping[str, str]
"""From ``KIND.GROUP NAMESPACE/NAME`` to a digest of what the object wants."""


class ApiServer(Kube, Protocol):
    """With what it serves, asked by path."""

    async def raw(self, path: str, query: Mapping[str, str] | None = None) -> Json: ...


class NotAsItWas(TargetError):
    """It could not be shown that the cluster is what it was."""


async def served(kube: ApiServer) -> list[Resource]:
    """All kinds that can be listed and deleted, each in the version that the server prefers."""
    groups = (await kube.raw("/apis")).get("groups") or ()
    paths = [("", "v1", "/api/v1")]
    paths += [
        (g["name"], g["preferredVersion"]["version"], f"/apis/{g['preferredVersion']['groupVersion']}") for g in groups
    ]
    found: list[Resource] = []
    for group, version, path in paths:
        try:
            answer = await kube.raw(path)
        except ApiError as error:
            if error.status in (404, 503):
                continue  # an aggregated API whose server is gone: what it has is in no store of this server
            raise
        found += [
            Resource(group, version, str(kind["name"]), str(kind["kind"]), bool(kind["namespaced"]))
            for kind in answer.get("resources") or ()
            if "/" not in kind["name"] and {"list", "delete"} <= set(kind.get("verbs") or ())
        ]
    return found


async def take(kube: ApiServer) -> Inventory:
    return {_called(r, obj): _wants(obj) for r, obj in await _standing(kube)}


async def settled(kube: ApiServer, apart_s: float, within_s: float) -> Inventory:
    """Once two looks in a row, ``apart_s`` from each other, saw the same. TargetError where none did ``within_s``."""
    changed: set[str] = set()
    try:
        async with asyncio.timeout(within_s):
            last = await take(kube)
            while True:
                await asyncio.sleep(apart_s)
                if (now := await take(kube)) == last:
                    return now
                changed = {name for name, _ in now.items() ^ last.items()}
                last = now
    except TimeoutError:
        what = _some(changed) or "it was looked at once"
        raise TargetError(f"the cluster did not come to rest within {within_s:g} s: {what}") from None


async def return_to(kube: ApiServer, earlier: Inventory, within_s: float) -> None:
    """Deletes what was not there ``earlier``. NotAsItWas where something else than that is different, or something
    stays for longer than ``within_s``."""
    more: list[tuple[Resource, Json]] = []
    try:
        async with asyncio.timeout(within_s):
            while True:
                standing = await _standing(kube)
                now = {_called(r, obj): _wants(obj) for r, obj in standing}
                if wrong := [name for name, wants in earlier.items() if now.get(name) != wants]:
                    raise NotAsItWas(f"what was there at the beginning is gone or another: {_some(wrong)}")
                more = [(r, obj) for r, obj in standing if _called(r, obj) not in earlier]
                if not more:
                    return
                await _delete(kube, more)
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        left = _some(_called(r, obj) for r, obj in more)
        raise NotAsItWas(f"still there after {within_s:.0f} s: {left}") from None


async def delete_at_once(kube: Kube, resource: Resource, obj: Json, grace_s: int | None = 0) -> None:
    """Whoever would have to agree (a controller by its finalizer, a kubelet by the end of the containers) is gone."""
    meta = obj["metadata"]
    namespace = meta.get("namespace")
    try:
        if meta.get("finalizers"):
            await kube.patch(resource, meta["name"], {"metadata": {"finalizers": None}}, namespace)
        await kube.delete(resource, meta["name"], namespace, grace_s=grace_s, propagation="Background")
    except NotFound:
        return


async def _standing(kube: ApiServer) -> list[tuple[Resource, Json]]:
    """All objects that count. What has an owner counts only where no owner of it is there any more, and pods always
    where their namespace is about to go: with their nodes away, nobody else would end them."""
    counting = [r for r in await served(kube) if r.kind not in PASSING or r == NODE]  # Nodes own their pods' mirrors
    everything = [(r, obj) for r in counting for obj in await _listed(kube, r)]
    uids = {obj["metadata"]["uid"] for _, obj in everything}
    ending = {
        obj["metadata"]["name"]
        for r, obj in everything
        if r.kind == NAMESPACE.kind and obj["metadata"].get("deletionTimestamp")
    }
    return [
        (r, obj)
        for r, obj in everything
        if r.kind not in PASSING
        and (
            not uids & {owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()}
            or (r.kind == POD.kind and obj["metadata"].get("namespace") in ending)
        )
    ]


async def _listed(kube: Kube, resource: Resource) -> Iterable[Json]:
    try:
        return (await kube.list(resource)).items
    except ApiError as error:
        if error.status in (404, 405, 503):
            return ()  # it was taken out of the server since it was asked what it serves
        raise


async def _delete(kube: Kube, more: Iterable[tuple[Resource, Json]]) -> None:
    found = list(more)
    first = [(r, obj) for r, obj in found if r in FIRST]
    await asyncio.gather(*(delete_at_once(kube, r, obj) for r, obj in first))
    nodes = {str(node["metadata"]["name"]) for node in (await kube.list(NODE)).items}
    await asyncio.gather(*(_order_away(kube, r, obj, nodes) for r, obj in found if r not in FIRST))


async def _order_away(kube: Kube, resource: Resource, obj: Json, nodes: Container[str]) -> None:
    """A pod whose node is there goes in good order: whoever comes next may want the port that it listens on."""
    if resource.kind == NAMESPACE.kind and obj["metadata"].get("deletionTimestamp"):
        return  # it goes once it is empty
    in_order = resource.kind == POD.kind and (obj.get("spec") or {}).get("nodeName") in nodes
    await delete_at_once(kube, resource, obj, None if in_order else 0)


def _called(resource: Resource, obj: Json) -> str:
    meta = obj["metadata"]
    return f"{resource.kind}.{resource.group or 'core'} {meta.get('namespace') or ''}/{meta['name']}"


def _wants(obj: Json) -> str:
    meta = obj["metadata"]
    own = {key: value for key, value in obj.items() if key not in ("metadata", "status", "apiVersion", "kind")}
    own["metadata"] = [meta.get("labels") or {}, meta.get("annotations") or {}]
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:16]


def _some(names: Iterable[str]) -> str:
    found = sorted(names)
    return ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")


async def delete_nodes(kube: Kube, names: Iterable[str]) -> None:
    there = {node["metadata"]["name"]: node for node in (await kube.list(NODE)).items}
    await asyncio.gather(*(delete_at_once(kube, NODE, there[name]) for name in names if name in there))
