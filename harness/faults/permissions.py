"""What a run must be allowed to do in a cluster, and no more: from the experiment's faults to RBAC objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.kube.port import CONFIG_MAP, LEASE, NAMESPACE, Json, Resource

READ = ("get", "list", "watch")
NAME = "gpu-harness"
KUBE_SYSTEM = "kube-system"
_METRICS = "custom.metrics.k8s.io"


@dataclass(frozen=True, slots=True)
class Need:
    """Verbs on one resource. Of a namespaced one everywhere if ``namespace`` is None; on one object by ``name``."""

    resource: Resource
    verbs: tuple[str, ...]
    subresource: str = ""
    namespace: str | None = None
    name: str = ""

    @property
    def plural(self) -> str:
        return f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural

    def __str__(self) -> str:
        group = f".{self.resource.group}" if self.resource.group else ""
        where = f" in {self.namespace}" if self.namespace else ""
        which = f" {self.name}" if self.name else ""
        return f"{', '.join(self.verbs)} {self.plural}{group}{which}{where}"


def needs_of_a_run(recorded: Sequence[Resource], namespace: str) -> tuple[Need, ...]:
    """What every run needs: to record, to know the cluster, to have it for itself, to keep its undo journal there and
    heal from it elsewhere."""
    return (
        *(Need(resource, READ) for resource in recorded),
        Need(NAMESPACE, ("get",), name=KUBE_SYSTEM),
        Need(NAMESPACE, ("get",), name=namespace),
        Need(LEASE, ("get", "create", "update", "delete"), namespace=namespace),
        Need(CONFIG_MAP, ("get", "list", "create", "update", "delete"), namespace=namespace),
        Need(Resource(_METRICS, "v1beta1", "pods", "MetricValueList", True), ("get",), "*", namespace),
    )


def needs_of_objects(objects: Iterable[tuple[Resource, Json]], namespace: str) -> tuple[Need, ...]:
    """To bring a manifest's objects and to take them away again."""
    found = {}
    for resource, obj in objects:
        where = str(obj["metadata"].get("namespace") or namespace) if resource.namespaced else None
        found[resource, where] = Need(resource, ("get", "create", "delete"), namespace=where)
    return tuple(found.values())


def rbac_objects(needs: Sequence[Need], namespace: str, name: str = NAME) -> list[Json]:
    """A service account with a role for each namespace and one for the cluster, and their bindings."""
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    objects: list[Json] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    ]
    for where in sorted({need.namespace for need in needs}, key=lambda n: n or ""):
        kind = "Role" if where else "ClusterRole"
        meta = {"name": name, **({"namespace": where} if where else {})}
        rules = _rules([need for need in needs if need.namespace == where])
        objects.append({"apiVersion": _RBAC, "kind": kind, "metadata": meta, "rules": rules})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        binding = {"apiVersion": _RBAC, "kind": f"{kind}Binding", "metadata": meta}
        objects.append(binding | {"roleRef": reference, "subjects": [account]})
    return objects


_RBAC = "rbac.authorization.k8s.io/v1"


def _rules(needs: Sequence[Need]) -> list[Json]:
    """One rule for each set of verbs on one group, so that a person can read them."""
    merged: dict[tuple[str, str, str], set[str]] = {}
    for need in needs:
        merged.setdefault((need.resource.group, need.plural, need.name), set()).update(need.verbs)
    by_verbs: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, plural, name), verbs in merged.items():
        by_verbs.setdefault((group, name, tuple(sorted(verbs, key=_ORDER.index))), []).append(plural)
    return [
        {"apiGroups": [group], "resources": sorted(plurals), "verbs": list(verbs)}
        | ({"resourceNames": [name]} if name else {})
        for (group, name, verbs), plurals in sorted(by_verbs.items())
    ]


_ORDER = ("get", "list", "watch", "create", "update", "patch", "delete")


def access_reviews(needs: Iterable[Need]) -> list[tuple[Need, str, Json]]:
    """A SelfSubjectAccessReview for each verb of each need."""
    return [
        (need, verb, {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "group": need.resource.group, "version": need.resource.version, "resource": need.resource.plural,
                "subresource": need.subresource, "verb": verb, "name": need.name, "namespace": need.namespace or "",
            }},
        })
        for need in needs
        for verb in need.verbs
    ]  # fmt: skip
