"""How many pods the controller of a pod is meant to have, for the budgets that count in shares of that.

The order and the words are those of kubernetes v1.37 pkg/controller/disruption (finders, getExpectedScale).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fakes.controllers.informer import Informer
from fakes.controllers.objects import controller_of, uid_of
from fakes.controllers.rollout import wanted_replicas
from harness.kube import port
from harness.kube.port import DEPLOYMENT, LEADER_WORKER_SET, REPLICA_SET, STATEFUL_SET, Json, Kube, NotFound, Resource

DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
_KINDS = {(r.api_version, r.kind): r for r in port.RESOURCES}


class Owner(NamedTuple):
    """The controller that a pod names."""

    api_version: str
    kind: str
    name: str
    uid: str

    @classmethod
    def of(cls, pod: Json) -> Owner | None:
        ref = controller_of(pod)
        return None if ref is None else cls(ref["apiVersion"], ref["kind"], ref["name"], ref["uid"])


class Scale(NamedTuple):
    uid: str
    replicas: int


class ScaleUnknown(Exception):
    """Nobody can say how many; the words are the real controller's."""


class OwnerScales:
    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self.sets = Informer(kube, REPLICA_SET)
        self.deployments = Informer(kube, DEPLOYMENT)
        self.stateful_sets = Informer(kube, STATEFUL_SET)
        self.informers = (self.deployments, self.sets, self.stateful_sets)

    async def of(self, namespace: str, owner: Owner) -> Scale | None:
        """None for a controller that is not there (any more). Raises ``ScaleUnknown``."""
        if owner.kind == REPLICA_SET.kind and owner.api_version == REPLICA_SET.api_version:
            return self._of_set(namespace, owner)
        if owner.kind == STATEFUL_SET.kind and owner.api_version == STATEFUL_SET.api_version:
            return _of(self.stateful_sets.objects.get((namespace, owner.name)), owner.uid)
        return await self._by_subresource(namespace, owner)

    def _of_set(self, namespace: str, owner: Owner) -> Scale | None:
        found = self.sets.objects.get((namespace, owner.name))
        if found is None or uid_of(found) != owner.uid:
            return None
        top = controller_of(found)
        if top is None or top["kind"] != DEPLOYMENT.kind:
            return _of(found, owner.uid)
        return _of(self.deployments.objects.get((namespace, top["name"])), str(top["uid"]))

    async def _by_subresource(self, namespace: str, owner: Owner) -> Scale | None:
        resource, path = await self._served(owner)
        if path is None:
            what = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
            raise ScaleUnknown(f"{what} does not implement the scale subresource")
        try:
            found = await self._kube.get(resource, owner.name, namespace if resource.namespaced else None)
        except NotFound:
            return None
        value: Any = found
        for step in path:
            value = (value or {}).get(step)
        return Scale(owner.uid, int(value or 0)) if uid_of(found) == owner.uid else None

    async def _served(self, owner: Owner) -> tuple[Resource, tuple[str, ...] | None]:
        """The owner's resource, and where its objects say how many they want."""
        known = _KINDS.get((owner.api_version, owner.kind))
        if known is not None:
            return known, ("spec", "replicas") if known == LEADER_WORKER_SET else None
        group, _, version = owner.api_version.rpartition("/")
        for crd in (await self._kube.list(DEFINITIONS)).items:
            spec, names = crd["spec"], crd["spec"]["names"]
            served = next((v for v in spec["versions"] if v["name"] == version and v.get("served")), None)
            if (spec["group"], names["kind"]) == (group, owner.kind) and served is not None:
                resource = Resource(group, version, names["plural"], owner.kind, spec["scope"] == "Namespaced")
                scale = (served.get("subresources") or {}).get("scale")
                return resource, tuple(scale["specReplicasPath"].strip(".").split(".")) if scale else None
        raise ScaleUnknown(f'no matches for kind "{owner.kind}" in version "{owner.api_version}"')


def _of(found: Json | None, uid: str) -> Scale | None:
    return None if found is None or uid_of(found) != uid else Scale(uid, wanted_replicas(found))
