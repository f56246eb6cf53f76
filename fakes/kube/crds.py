"""CustomResourceDefinitions: accepted as they come, served at once, with status and scale subresources.

Their schemas are stored and not applied: no pruning, no defaulting, no validation, and no conversion between versions
but the name of the version.
"""

from __future__ import annotations

from fakes.kube.kinds import CUSTOM_RESOURCE_DEFINITION, Kind, ScalePaths, View
from fakes.kube.store import Store
from harness.kube.port import Json, Resource

RESOURCE = CUSTOM_RESOURCE_DEFINITION


def kinds_of(crd: Json) -> list[Kind]:
    """The stored version first, then those that are views of it."""
    spec = crd["spec"]
    served = [v for v in spec["versions"] if v.get("served")]
    stored = next((v for v in spec["versions"] if v.get("storage")), None)
    if stored is None:
        return []
    base = _kind(spec, stored, None)
    return [base, *(_kind(spec, v, base.resource) for v in served if v is not stored)]


def _kind(spec: Json, version: Json, of: Resource | None) -> Kind:
    names = spec["names"]
    resource = Resource(spec["group"], version["name"], names["plural"], names["kind"], spec["scope"] == "Namespaced")
    subresources = version.get("subresources") or {}
    scale = subresources.get("scale")
    return Kind(
        resource,
        names.get("singular") or names["kind"].lower(),
        tuple(names.get("shortNames") or ()),
        tuple(names.get("categories") or ()),
        status="status" in subresources,
        scale=_scale(scale) if scale else None,
        generation=True,
        custom=True,
        unconditional_update=False,
        reset_by_status={"f:spec": {}, "f:metadata": {}},
        view=_view(of, resource) if of else None,
        columns=tuple(version.get("additionalPrinterColumns") or ()),
    )


def _view(of: Resource, resource: Resource) -> View:
    return View(
        of,
        outward=lambda obj: obj | {"apiVersion": resource.api_version},
        inward=lambda obj: obj | {"apiVersion": of.api_version},
    )


def _scale(raw: Json) -> ScalePaths:
    def steps(text: str) -> tuple[str, ...]:
        return tuple(step for step in text.split(".") if step)

    return ScalePaths(
        steps(raw.get("specReplicasPath", "")),
        steps(raw.get("statusReplicasPath", "")),
        steps(raw.get("labelSelectorPath", "")),
    )


def serve(store: Store, crd: Json) -> None:
    """Serves what the definition says, and says so in its status."""
    if crd["metadata"].get("deletionTimestamp"):
        return
    withdraw_changed(store, crd)
    for kind in kinds_of(crd):
        store.serve(kind)
    status = accepted(crd, store.wall.stamp())
    if crd.get("status") != status:
        store.put(RESOURCE, crd | {"metadata": dict(crd["metadata"]), "status": status})


def accepted(crd: Json, stamp: str) -> Json:
    present = {c["type"]: c for c in (crd.get("status") or {}).get("conditions") or []}
    found = []
    for type_, reason, message in (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ):
        fresh = {
            "type": type_, "status": "True", "lastTransitionTime": stamp, "reason": reason, "message": message,
        }  # fmt: skip
        found.append(present.get(type_, fresh))
    stored = [v["name"] for v in crd["spec"]["versions"] if v.get("storage")]
    before = (crd.get("status") or {}).get("storedVersions") or []
    names = {k: v for k, v in crd["spec"]["names"].items() if v}
    return {
        "conditions": found,
        "acceptedNames": names,
        "storedVersions": [*before, *(v for v in stored if v not in before)],
    }


def withdraw_changed(store: Store, crd: Json) -> None:
    """Versions that the definition no longer serves."""
    spec = crd["spec"]
    wanted = {kind.served for kind in kinds_of(crd)}
    for served, kind in list(store.kinds.served.items()):
        is_its = (kind.resource.group, kind.resource.plural) == (spec["group"], spec["names"]["plural"])
        if is_its and served not in wanted and kind.view is not None:
            store.kinds.remove(kind)


def withdraw(store: Store, crd: Json) -> None:
    """All of it, objects included."""
    for kind in kinds_of(crd):
        store.withdraw(kind)
