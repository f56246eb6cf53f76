"""What is served, told in the two ways in which clients ask: plain lists, and aggregated discovery v2."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from fakes.config import PlantedBug
from fakes.kube.kinds import Kind, Kinds
from fakes.kube.store import Store
from harness.kube.port import Json

GIT_VERSION = "v1.37.2"
"""The dispatcher of some kubectl packages runs the kubectl of this minor; any kubectl within one minor is supported."""
_REPLACED_BY, _REPLACED_AFTER_S = "v1.38.0", 20.0

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_SUBRESOURCE_KINDS = {"scale": ("autoscaling", "v1", "Scale"), "eviction": ("policy", "v1", "Eviction"),
                      "binding": ("", "v1", "Binding")}  # fmt: skip
_SUBRESOURCE_VERBS = {"eviction": ["create"], "binding": ["create"], "log": ["get"], "finalize": ["update"]}
_DISCOVERY = "apidiscovery.k8s.io"

# Groups that answer reviews only; nothing in them is stored.
REVIEWS: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("authorization.k8s.io", "v1"): (
        ("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        ("selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    ),
    ("authentication.k8s.io", "v1"): (("selfsubjectreviews", "SelfSubjectReview"),),
}


class Described(Protocol):
    """What discovery needs of an aggregated API."""

    @property
    def group(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def resources(self) -> list[Json]: ...


GroupVersions = dict[str, list[str]]


def version_info(store: Store) -> Json:
    """With the planted bug a control plane that somebody replaces while the run goes on."""
    replaced = PlantedBug.API_SERVER_REPLACED in store.bugs and store.age_s() > _REPLACED_AFTER_S
    version = _REPLACED_BY if replaced else GIT_VERSION
    major, minor = version.lstrip("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": version,
        "gitCommit": "embedded",
        "gitTreeState": "clean",
        "buildDate": "2024-12-11T17:59:15Z",
        "goVersion": "none",
        "compiler": "none",
        "platform": "embedded/gpu-harness",
    }


def resource_list(kinds: Kinds, group: str, version: str, aggregated: Sequence[Described]) -> Json | None:
    """APIResourceList of one group version; None when it is not served."""
    resources = _resources(kinds, group, version, aggregated)
    if not resources:
        return None
    api_version = f"{group}/{version}" if group else version
    found: Json = {"kind": "APIResourceList", "groupVersion": api_version, "resources": resources}
    return found | {"apiVersion": "v1"} if group else found


def _resources(kinds: Kinds, group: str, version: str, aggregated: Sequence[Described]) -> list[Json]:
    found: list[Json] = []
    for kind in kinds.served.values():
        if (kind.resource.group, kind.resource.version) == (group, version):
            found += _entries(kind)
    for plural, name in REVIEWS.get((group, version), ()):
        found.append(
            {"name": plural, "singularName": name.lower(), "namespaced": False, "kind": name, "verbs": ["create"]}
        )
    for api in aggregated:
        if (api.group, api.version) == (group, version):
            found += api.resources
    return found


def _verbs(kind: Kind) -> list[str]:
    if kind.custom:
        return ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    return [v for v in VERBS if v != "deletecollection" or kind.collections]


def _entries(kind: Kind) -> list[Json]:
    resource = kind.resource
    entry: Json = {
        "name": resource.plural,
        "singularName": kind.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    return [entry, *(_sub_entry(kind, sub) for sub in kind.subresources)]


def _sub_entry(kind: Kind, subresource: str) -> Json:
    entry: Json = {
        "name": f"{kind.resource.plural}/{subresource}",
        "singularName": "",
        "namespaced": kind.resource.namespaced,
        "kind": kind.resource.kind,
        "verbs": _SUBRESOURCE_VERBS.get(subresource, ["get", "patch", "update"]),
    }
    if subresource in _SUBRESOURCE_KINDS:
        group, version, name = _SUBRESOURCE_KINDS[subresource]
        entry |= {"group": group, "version": version, "kind": name} if group else {"kind": name}
    return entry


def groups(kinds: Kinds, aggregated: Sequence[Described]) -> GroupVersions:
    """Named groups and their versions, the preferred one first."""
    found: GroupVersions = {}
    pairs = [(k.resource.group, k.resource.version) for k in kinds.served.values()]
    pairs += [*REVIEWS, *((a.group, a.version) for a in aggregated)]
    for group, version in pairs:
        if group and version not in found.setdefault(group, []):
            found[group].append(version)
    custom = {k.resource.group for k in kinds.served.values() if k.custom}
    return {g: sorted(v, key=_priority) if g in custom else v for g, v in found.items()}


def _priority(version: str) -> tuple[int, int, int]:
    """General availability before beta before alpha, and the higher number first, as versions of CRDs are ordered."""
    found = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if found is None:
        return 3, 0, 0
    return {None: 0, "beta": 1, "alpha": 2}[found[2]], -int(found[1]), -int(found[3] or 0)


def api_versions(host: str) -> Json:
    address = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": address}


def api_group(name: str, versions: list[str]) -> Json:
    entries = [{"groupVersion": f"{name}/{v}", "version": v} for v in versions]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": entries, "preferredVersion": entries[0]}


def api_group_list(kinds: Kinds, aggregated: Sequence[Described]) -> Json:
    entries = [api_group(name, versions) for name, versions in groups(kinds, aggregated).items()]
    bare = [{k: v for k, v in e.items() if k not in ("kind", "apiVersion")} for e in entries]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": bare}


def wanted_discovery(accept: str) -> str | None:
    """``v2`` where the client takes aggregated discovery; older forms are no longer served, as on a real 1.37."""
    for part in accept.split(","):
        parameters = {p.strip() for p in part.split(";")[1:]}
        if {f"g={_DISCOVERY}", "as=APIGroupDiscoveryList", "v=v2"} <= parameters:
            return "v2"
    return None


def discovery_type(version: str) -> str:
    return f"application/json;g={_DISCOVERY};v={version};as=APIGroupDiscoveryList"


def discovery_list(kinds: Kinds, version: str, core: bool, aggregated: Sequence[Described]) -> Json:
    named: GroupVersions = {"": ["v1"]} if core else groups(kinds, aggregated)
    items = []
    for group, versions in named.items():
        entries = [
            {"version": v, "resources": _discovered(kinds, group, v, aggregated), "freshness": "Current"}
            for v in versions
        ]
        meta: Json = {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None}
        items.append({"metadata": meta, "versions": entries})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": f"{_DISCOVERY}/{version}", "metadata": {}, "items": items}


def _discovered(kinds: Kinds, group: str, version: str, aggregated: Sequence[Described]) -> list[Json]:
    found: dict[str, Json] = {}
    for entry in _resources(kinds, group, version, aggregated):
        plural, _, sub = entry["name"].partition("/")
        kind = {"group": entry.get("group", ""), "version": entry.get("version", ""), "kind": entry["kind"]}
        if sub and plural in found:
            described = {"subresource": sub, "responseKind": kind, "verbs": entry["verbs"]}
            found[plural].setdefault("subresources", []).append(described)
            continue
        found[entry["name"]] = {
            "resource": entry["name"],
            "responseKind": kind,
            "scope": "Namespaced" if entry["namespaced"] else "Cluster",
            "singularResource": entry.get("singularName", ""),
            "verbs": entry["verbs"],
        } | {k: entry[k] for k in ("shortNames", "categories") if k in entry}
    return list(found.values())
