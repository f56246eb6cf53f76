"""What faults, recorder, controllers, nodes and cloud need of Kubernetes, and nothing more.

Two implementations: ``fakes.kube.local`` on the embedded store in process, ``harness.kube.http`` over HTTP to any API
server. Code written against this port runs on either. Objects are the API's own JSON.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Json = dict[str, Any]
"""A Kubernetes object as the API serves it. Treat what you were handed as read-only: copy before changing."""

Patch = Json | list[Json]
"""The body of a patch: an object, or the operations of a JSON patch."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A served resource. ``group`` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The REST path; ``namespace=None`` on a namespaced resource means all namespaces."""
        base = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        tail = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{base}{scope}/{self.plural}{tail}"


NAMESPACE = Resource("", "v1", "namespaces", "Namespace", False)
NODE = Resource("", "v1", "nodes", "Node", False)
POD = Resource("", "v1", "pods", "Pod", True)
SERVICE = Resource("", "v1", "services", "Service", True)
CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap", True)
SECRET = Resource("", "v1", "secrets", "Secret", True)
SERVICE_ACCOUNT = Resource("", "v1", "serviceaccounts", "ServiceAccount", True)
EVENT = Resource("", "v1", "events", "Event", True)
LEASE = Resource("coordination.k8s.io", "v1", "leases", "Lease", True)
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment", True)
REPLICA_SET = Resource("apps", "v1", "replicasets", "ReplicaSet", True)
STATEFUL_SET = Resource("apps", "v1", "statefulsets", "StatefulSet", True)
HPA = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", True)
PDB = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True)
ENDPOINT_SLICE = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", True)
PRIORITY_CLASS = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False)
POD_GROUP = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True)
NODE_POOL = Resource("karpenter.sh", "v1", "nodepools", "NodePool", False)
NODE_CLAIM = Resource("karpenter.sh", "v1", "nodeclaims", "NodeClaim", False)
LEADER_WORKER_SET = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", True)

RESOURCES: tuple[Resource, ...] = (
    NAMESPACE, NODE, POD, SERVICE, CONFIG_MAP, SECRET, SERVICE_ACCOUNT, EVENT, LEASE, DEPLOYMENT, REPLICA_SET, HPA, PDB,
    ENDPOINT_SLICE, PRIORITY_CLASS, POD_GROUP, NODE_POOL, NODE_CLAIM, STATEFUL_SET, LEADER_WORKER_SET,
)  # fmt: skip

JOB = Resource("batch", "v1", "jobs", "Job", True)
DEVICE_CLASS = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False)
DEVICE_TAINT_RULE = Resource("resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule", False)
RESOURCE_CLAIM = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", True)
RESOURCE_CLAIM_TEMPLATE = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True)
RESOURCE_SLICE = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False)

REAL_ONLY: tuple[Resource, ...] = (
    JOB, DEVICE_CLASS, DEVICE_TAINT_RULE, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE,
)  # fmt: skip
"""What kube-apiserver 1.37 serves without any gate, and the embedded API does not."""


class EventType(enum.StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    type: EventType
    object: Json


@dataclass(frozen=True, slots=True)
class ObjectList:
    items: tuple[Json, ...]
    resource_version: str


class PatchType(enum.StrEnum):
    """The value is the request's Content-Type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class ApiError(Exception):
    """An answer of the API server that is not a success. ``status`` is the HTTP code, ``body`` the Status object."""

    def __init__(self, status: int, reason: str, message: str, body: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.body = body or {}


class NotFound(ApiError):
    """404."""


class Conflict(ApiError):
    """409, reason Conflict: the resourceVersion or a precondition did not match."""


class AlreadyExists(ApiError):
    """409, reason AlreadyExists."""


class Gone(ApiError):
    """410, reason Expired: the resourceVersion is older than the watch window; list again."""


class Invalid(ApiError):
    """422 (or 400): the object or request is wrong."""


class TooManyRequests(ApiError):
    """429: an eviction refused by a disruption budget, or the server's own throttling."""


class WatchClosed(ConnectionError):
    """The watch's connection broke. Resume from the last resourceVersion seen."""


def api_error(status: int, body: Mapping[str, Any]) -> ApiError:
    """The typed error for a Status body."""
    reason = str(body.get("reason") or "")
    message = str(body.get("message") or "")
    kinds: dict[int, type[ApiError]] = {404: NotFound, 410: Gone, 422: Invalid, 400: Invalid, 429: TooManyRequests}
    kind = AlreadyExists if reason == "AlreadyExists" else Conflict if status == 409 else kinds.get(status, ApiError)
    return kind(status, reason, message, body)


def eviction_options(grace_s: int | None, dry_run: bool) -> Json:
    """The deleteOptions of an eviction; empty when it says nothing special."""
    options: Json = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
    return options | {"dryRun": ["All"]} if dry_run else options


class Kube(Protocol):
    """The port. All calls raise ``ApiError``; over HTTP also ``ConnectionError`` when the server cannot be reached."""

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Json: ...

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        """All objects in one consistent snapshot, following ``continue`` where the server pages."""
        ...

    def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        """Events after ``resource_version``, in order, for ever. Raises ``Gone`` when it is too old and ``WatchClosed``
        when the server ends the watch or the connection breaks; bookmarks are passed on."""
        ...

    async def create(self, resource: Resource, obj: Json, namespace: str | None = None) -> Json: ...

    async def update(self, resource: Resource, obj: Json, *, subresource: str | None = None) -> Json:
        """PUT; with ``metadata.resourceVersion`` set it is conditional. ``subresource`` is e.g. ``status``."""
        ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        namespace: str | None = None,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str | None = None,
    ) -> Json:
        """``subresource``: ``status`` or ``scale`` (then ``patch`` and the answer are autoscaling/v1 Scale)."""
        ...

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        grace_s: int | None = None,
        uid: str | None = None,
        propagation: str | None = None,
    ) -> None:
        """``grace_s`` is gracePeriodSeconds as written to the API; ``uid`` a precondition; ``propagation`` Background,
        Foreground or Orphan."""
        ...

    async def evict(self, name: str, namespace: str, *, grace_s: int | None = None, dry_run: bool = False) -> None:
        """POST pods/NAME/eviction; raises ``TooManyRequests`` when a disruption budget refuses."""
        ...

    async def bind(self, name: str, namespace: str, node: str) -> None:
        """POST pods/NAME/binding; raises ``Conflict`` when the pod is bound already."""
        ...


class ForwardingKube:
    """A ``Kube`` in front of another one, for those who stand in between: each call comes by ``enter`` first, which may
    wait, refuse by raising, or do something of its own before the call goes on."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def enter(
        self, verb: str, resource: Resource, namespace: str | None, name: str = "", subresource: str = ""
    ) -> None:
        """Verbs are those of RBAC: an eviction is a ``create`` of ``pods/eviction``."""

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Json:
        await self.enter("get", resource, namespace, name)
        return await self._kube.get(resource, name, namespace)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        await self.enter("list", resource, namespace)
        return await self._kube.list(resource, namespace, label_selector=label_selector, field_selector=field_selector)

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        await self.enter("watch", resource, namespace)
        async for event in self._kube.watch(
            resource, namespace, resource_version=resource_version, label_selector=label_selector
        ):
            yield event

    async def create(self, resource: Resource, obj: Json, namespace: str | None = None) -> Json:
        await self.enter("create", resource, namespace)
        return await self._kube.create(resource, obj, namespace)

    async def update(self, resource: Resource, obj: Json, *, subresource: str | None = None) -> Json:
        meta = obj["metadata"]
        await self.enter("update", resource, meta.get("namespace"), meta.get("name", ""), subresource or "")
        return await self._kube.update(resource, obj, subresource=subresource)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        namespace: str | None = None,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str | None = None,
    ) -> Json:
        await self.enter("patch", resource, namespace, name, subresource or "")
        return await self._kube.patch(resource, name, patch, namespace, type=type, subresource=subresource)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        grace_s: int | None = None,
        uid: str | None = None,
        propagation: str | None = None,
    ) -> None:
        await self.enter("delete", resource, namespace, name)
        await self._kube.delete(resource, name, namespace, grace_s=grace_s, uid=uid, propagation=propagation)

    async def evict(self, name: str, namespace: str, *, grace_s: int | None = None, dry_run: bool = False) -> None:
        await self.enter("create", POD, namespace, name, "eviction")
        await self._kube.evict(name, namespace, grace_s=grace_s, dry_run=dry_run)

    async def bind(self, name: str, namespace: str, node: str) -> None:
        await self.enter("create", POD, namespace, name, "binding")
        await self._kube.bind(name, namespace, node)
