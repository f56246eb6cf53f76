"""What is served: the resources of the port and of CRDs, with the traits in which kinds differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fakes.kube.schema.build import custom_type, type_of
from fakes.kube.schema.model import Struct
from fakes.kube.versions import event_inward, event_outward, hpa_inward, hpa_outward
from harness.kube import port
from harness.kube.port import Json, Resource

Key = tuple[str, str]
"""(group, plural)."""
Served = tuple[str, str, str]
"""(group, version, plural)."""


@dataclass(frozen=True, slots=True)
class View:
    """A second version in which objects of another kind are served; one store, two shapes."""

    of: Resource
    outward: Callable[[Json], Json]
    inward: Callable[[Json], Json]


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a custom kind keeps what its scale subresource shows."""

    spec: tuple[str, ...] = ("spec", "replicas")
    status: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    resource: Resource
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    schema: str = ""
    """Name of the Go type; a custom kind has none."""
    status: bool = False
    """Has a status subresource: the main PUT ignores status, and the status PUT ignores spec."""
    scale: ScalePaths | None = None
    generation: bool = False
    custom: bool = False
    """Comes from a CRD on a real cluster: no strategic merge patch, and an update must state its resourceVersion."""
    status_on_create: bool = False
    """The status that comes with a POST is kept (a kubelet registers its Node with one)."""
    unconditional_update: bool = True
    collections: bool = True
    """May be deleted as a collection."""
    create_on_update: bool = False
    """A PUT to a name that is not there creates it."""
    reset_by_status: Json = field(default_factory=lambda: {"f:spec": {}})
    """Fields (FieldsV1) that a write through the status subresource leaves as they are."""
    view: View | None = None
    columns: tuple[Json, ...] = ()
    """additionalPrinterColumns of a CRD."""

    @property
    def key(self) -> Key:
        return self.resource.group, self.resource.plural

    @property
    def served(self) -> Served:
        return self.resource.group, self.resource.version, self.resource.plural

    @property
    def type(self) -> Struct:
        return type_of(self.schema) if self.schema else custom_type(self.resource.kind)

    @property
    def subresources(self) -> tuple[str, ...]:
        names = tuple(n for n, served in (("status", self.status), ("scale", bool(self.scale))) if served)
        if self.resource == port.NAMESPACE:
            return (*names, "finalize")
        return (*names, "eviction", "binding", "log") if self.resource == port.POD else names


CUSTOM_RESOURCE_DEFINITION = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False
)
NEW_EVENT = Resource("events.k8s.io", "v1", "events", "Event", True)
OLD_HPA = Resource("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", True)

_ALL_CATEGORY = (port.POD, port.SERVICE, port.DEPLOYMENT, port.REPLICA_SET, port.STATEFUL_SET, port.HPA)
_REPLICAS = ScalePaths()
_LABELS: Json = {"f:labels": {}}
_POD_META: Json = {"f:deletionTimestamp": {}, "f:ownerReferences": {}}


def _builtin(schema: str, resource: Resource, *short_names: str, **traits: object) -> Kind:
    categories = ("all",) if resource in _ALL_CATEGORY else ()
    if resource == CUSTOM_RESOURCE_DEFINITION:
        categories = ("api-extensions",)
    return Kind(resource, resource.kind.lower(), short_names, categories, schema, **traits)  # type: ignore[arg-type]  # traits are Kind's own fields


def _custom(
    resource: Resource, *short_names: str, categories: tuple[str, ...] = (), scale: ScalePaths | None = None
) -> Kind:
    return Kind(
        resource, resource.kind.lower(), short_names, categories, status=True, scale=scale, generation=True,
        custom=True, unconditional_update=False, reset_by_status={"f:spec": {}, "f:metadata": {}},
    )  # fmt: skip


_STORED = (
    _builtin("core/v1.Namespace", port.NAMESPACE, "ns", status=True, collections=False),
    _builtin("core/v1.Node", port.NODE, "no", status=True, status_on_create=True),
    _builtin("core/v1.Pod", port.POD, "po", status=True, generation=True,
             reset_by_status={"f:spec": {}, "f:metadata": _POD_META}),
    _builtin("core/v1.Service", port.SERVICE, "svc", status=True),
    _builtin("core/v1.ConfigMap", port.CONFIG_MAP, "cm"),
    _builtin("core/v1.Secret", port.SECRET),
    _builtin("core/v1.ServiceAccount", port.SERVICE_ACCOUNT, "sa"),
    _builtin("core/v1.Event", port.EVENT, "ev", create_on_update=True),
    _builtin("coordination/v1.Lease", port.LEASE, unconditional_update=False, create_on_update=True),
    _builtin("apps/v1.Deployment", port.DEPLOYMENT, "deploy", status=True, scale=_REPLICAS, generation=True,
             reset_by_status={"f:spec": {}, "f:metadata": _LABELS}),
    _builtin("apps/v1.ReplicaSet", port.REPLICA_SET, "rs", status=True, scale=_REPLICAS, generation=True),
    _builtin("apps/v1.StatefulSet", port.STATEFUL_SET, "sts", status=True, scale=_REPLICAS, generation=True),
    _builtin("autoscaling/v2.HorizontalPodAutoscaler", port.HPA, "hpa", status=True, generation=True),
    _builtin("policy/v1.PodDisruptionBudget", port.PDB, "pdb", status=True, generation=True,
             unconditional_update=False),
    _builtin("discovery/v1.EndpointSlice", port.ENDPOINT_SLICE, generation=True),
    _builtin("scheduling/v1.PriorityClass", port.PRIORITY_CLASS, "pc", generation=True),
    _builtin("scheduling/v1beta1.PodGroup", port.POD_GROUP, status=True,
             reset_by_status={"f:spec": {}, "f:metadata": {}}),
    _builtin("apiextensions/v1.CustomResourceDefinition", CUSTOM_RESOURCE_DEFINITION, "crd", "crds", status=True,
             generation=True, unconditional_update=False),
    _custom(port.NODE_POOL, "nodepool", categories=("karpenter",)),
    _custom(port.NODE_CLAIM, "nodeclaim", categories=("karpenter",)),
    _custom(port.LEADER_WORKER_SET, "lws", scale=ScalePaths(selector=("status", "hpaPodSelector"))),
)  # fmt: skip

_VIEWS = (
    Kind(NEW_EVENT, "event", ("ev",), (), "events/v1.Event", create_on_update=True,
         view=View(port.EVENT, event_outward, event_inward)),
    Kind(OLD_HPA, "horizontalpodautoscaler", ("hpa",), ("all",), "autoscaling/v1.HorizontalPodAutoscaler",
         status=True, generation=True, view=View(port.HPA, hpa_outward, hpa_inward)),
)  # fmt: skip


class Kinds:
    """What one store serves: the kinds of a fresh world, and those that its CRDs define."""

    def __init__(self) -> None:
        self.stored: dict[Key, Kind] = {kind.key: kind for kind in _STORED}
        self.served: dict[Served, Kind] = {kind.served: kind for kind in (*_STORED, *_VIEWS)}

    def find(self, resource: Resource) -> Kind | None:
        return self.served.get((resource.group, resource.version, resource.plural))

    def base(self, kind: Kind) -> Kind:
        """The kind under which its objects are stored."""
        return kind if kind.view is None else self.served[_served(kind.view.of)]

    def add(self, kind: Kind) -> None:
        self.served[kind.served] = kind
        if kind.view is None:
            self.stored[kind.key] = kind

    def remove(self, kind: Kind) -> None:
        self.served.pop(kind.served, None)
        if kind.view is None:
            self.stored.pop(kind.key, None)


def _served(resource: Resource) -> Served:
    return resource.group, resource.version, resource.plural
