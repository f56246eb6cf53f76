"""What is served: every resource of the port, with the traits in which kinds differ."""

from __future__ import annotations

from dataclasses import dataclass

from harness.kube import port
from harness.kube.port import Resource

Key = tuple[str, str]
"""(group, plural)."""


@dataclass(frozen=True, slots=True)
class Kind:
    resource: Resource
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = False
    """Has a status subresource: the main PUT ignores status, and the status PUT ignores spec."""
    scale: bool = False
    generation: bool = False
    custom: bool = False
    """Comes from a CRD on a real cluster: no strategic merge patch, and an update must state its resourceVersion."""
    status_on_create: bool = False
    """The status that comes with a POST is kept (a kubelet registers its Node with one)."""
    metadata_by_status: bool = False
    """A status update may change labels and annotations too."""
    unconditional_update: bool = True

    @property
    def key(self) -> Key:
        return self.resource.group, self.resource.plural

    @property
    def subresources(self) -> tuple[str, ...]:
        found = (("status", self.status), ("scale", self.scale))
        names = tuple(name for name, served in found if served)
        return (*names, "eviction", "binding") if self.resource == port.POD else names


def _builtin(resource: Resource, *short_names: str, **traits: bool) -> Kind:
    categories = ("all",) if resource in (port.POD, port.SERVICE, port.DEPLOYMENT, port.REPLICA_SET, port.HPA) else ()
    return Kind(resource, resource.kind.lower(), short_names, categories, **traits)


_ALL = (
    _builtin(port.NAMESPACE, "ns", status=True),
    _builtin(port.NODE, "no", status=True, status_on_create=True, metadata_by_status=True),
    _builtin(port.POD, "po", status=True, generation=True, metadata_by_status=True),
    _builtin(port.SERVICE, "svc", status=True),
    _builtin(port.CONFIG_MAP, "cm"),
    _builtin(port.SECRET),
    _builtin(port.SERVICE_ACCOUNT, "sa"),
    _builtin(port.EVENT, "ev"),
    _builtin(port.LEASE, unconditional_update=False),
    _builtin(port.DEPLOYMENT, "deploy", status=True, scale=True, generation=True),
    _builtin(port.REPLICA_SET, "rs", status=True, scale=True, generation=True),
    _builtin(port.HPA, "hpa", status=True),
    _builtin(port.PDB, "pdb", status=True, generation=True, unconditional_update=False),
    _builtin(port.ENDPOINT_SLICE, generation=True),
    _builtin(port.PRIORITY_CLASS, "pc", generation=True),
    _builtin(port.POD_GROUP, status=True, generation=True),
    Kind(port.NODE_POOL, "nodepool", (), ("karpenter",), status=True, generation=True, custom=True,
         unconditional_update=False),
    Kind(port.NODE_CLAIM, "nodeclaim", (), ("karpenter",), status=True, generation=True, custom=True,
         unconditional_update=False),
)  # fmt: skip

KINDS: dict[Key, Kind] = {kind.key: kind for kind in _ALL}
