"""Makes ``types.json`` from the Go sources of Kubernetes' API types: ``python -m fakes.kube.schema.go_types MODULES``.

``MODULES`` is the folder of a Go module cache that holds ``api@VERSION``, ``apimachinery@VERSION`` and
``apiextensions-apiserver@VERSION`` (``$(go env GOMODCACHE)/k8s.io``). The struct tags there say all that decides how
the real server reads and writes an object: JSON name, omitempty, pointer or value, patch strategy, list type and map
keys, protobuf number. Only what the embedded server's kinds reach, and those that people
write into manifests beside them, is kept, and no comments.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VERSION = "v0.37.2"
PACKAGES = {
    "meta/v1": "apimachinery@{v}/pkg/apis/meta/v1",
    "core/v1": "api@{v}/core/v1",
    "apps/v1": "api@{v}/apps/v1",
    "batch/v1": "api@{v}/batch/v1",
    "resource/v1": "api@{v}/resource/v1",
    "networking/v1": "api@{v}/networking/v1",
    "autoscaling/v1": "api@{v}/autoscaling/v1",
    "autoscaling/v2": "api@{v}/autoscaling/v2",
    "policy/v1": "api@{v}/policy/v1",
    "coordination/v1": "api@{v}/coordination/v1",
    "discovery/v1": "api@{v}/discovery/v1",
    "events/v1": "api@{v}/events/v1",
    "scheduling/v1": "api@{v}/scheduling/v1",
    "scheduling/v1beta1": "api@{v}/scheduling/v1beta1",
    "scheduling/v1alpha3": "api@{v}/scheduling/v1alpha3",
    "authorization/v1": "api@{v}/authorization/v1",
    "authentication/v1": "api@{v}/authentication/v1",
    "apiextensions/v1": "apiextensions-apiserver@{v}/pkg/apis/apiextensions/v1",
}
ROOTS = (
    "core/v1.Namespace", "core/v1.Node", "core/v1.Pod", "core/v1.Service", "core/v1.ConfigMap", "core/v1.Secret",
    "core/v1.ServiceAccount", "core/v1.Event", "core/v1.Binding", "coordination/v1.Lease", "apps/v1.Deployment",
    "apps/v1.ReplicaSet", "apps/v1.StatefulSet", "apps/v1.DaemonSet", "batch/v1.Job", "batch/v1.CronJob",
    "resource/v1.ResourceClaim", "resource/v1.ResourceClaimTemplate", "resource/v1.DeviceClass",
    "networking/v1.Ingress", "networking/v1.NetworkPolicy",
    "autoscaling/v1.Scale", "autoscaling/v1.HorizontalPodAutoscaler",
    "autoscaling/v2.HorizontalPodAutoscaler", "policy/v1.PodDisruptionBudget", "policy/v1.Eviction",
    "discovery/v1.EndpointSlice", "events/v1.Event", "scheduling/v1.PriorityClass", "scheduling/v1beta1.PodGroup",
    "authorization/v1.SelfSubjectAccessReview", "authorization/v1.SelfSubjectRulesReview",
    "authentication/v1.SelfSubjectReview", "apiextensions/v1.CustomResourceDefinition", "meta/v1.DeleteOptions",
)  # fmt: skip

OPAQUE = {
    "resource.Quantity": "quantity",
    "meta/v1.Time": "time",
    "meta/v1.MicroTime": "microtime",
    "meta/v1.Duration": "duration",
    "meta/v1.FieldsV1": "any",
    "intstr.IntOrString": "int-or-string",
    "runtime.RawExtension": "any",
    "types.UID": "string",
    "types.NodeName": "string",
    "apiextensions/v1.JSON": "any",
    "apiextensions/v1.JSONSchemaProps": "any",
}
BASIC = {"string", "bool", "int32", "int64", "float64", "byte"}

_STRUCT = re.compile(r"^type (\w+) struct ?\{(\}|\n.*?^\})", re.M | re.S)
_ALIAS = re.compile(r"^type (\w+) (=\s*)?([\w.\[\]*]+)$", re.M)
_FIELD = re.compile(r"^\s*(?:(\w+)\s+)?([\w.\[\]*]+)\s+`(.*)`")
_TAG = re.compile(r'(\w+):"((?:[^"\\]|\\.)*)"')
_QUALIFIED = {
    "metav1": "meta/v1",
    "v1": "core/v1",
    "corev1": "core/v1",
    "apiv1": "core/v1",
    "autoscalingv1": "autoscaling/v1",
    "schedulingv1alpha3": "scheduling/v1alpha3",
}


@dataclass
class Sources:
    """``structs``: full type name to its body; ``aliases``: full type name to what it stands for."""

    structs: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def read(self, modules: Path) -> None:
        for package, where in PACKAGES.items():
            for path in sorted((modules / where.format(v=VERSION)).glob("*.go")):
                if path.name.endswith("_test.go") or path.name.startswith(("zz_", "generated")):
                    continue
                text = path.read_text()
                for found in _STRUCT.finditer(text):
                    self.structs[f"{package}.{found[1]}"] = found[2]
                for found in _ALIAS.finditer(text):
                    self.aliases[f"{package}.{found[1]}"] = self.qualified(found[3], package)

    def qualified(self, go: str, package: str) -> str:
        """``[]v1.Pod`` in a package as ``[]core/v1.Pod``."""
        for prefix in ("[]", "*", "map[string]"):
            if go.startswith(prefix):
                return prefix + self.qualified(go[len(prefix) :], package)
        if go.startswith("map["):
            return "map[string]" + self.qualified(go.partition("]")[2], package)
        if go in BASIC:
            return go
        qualifier, dot, name = go.rpartition(".")
        full = f"{_QUALIFIED.get(qualifier, qualifier)}.{name}" if dot else f"{package}.{go}"
        return OPAQUE.get(full, full)


def fields_of(sources: Sources, full: str) -> Iterator[dict[str, Any]]:
    package = full.rpartition(".")[0]
    markers: dict[str, list[str]] = {}
    for line in sources.structs[full].splitlines():
        text = line.strip()
        if text.startswith("//"):
            if found := re.match(r"//\s*\+(listType|listMapKey|structType|mapType)=(\w+)", text):
                markers.setdefault(found[1], []).append(found[2])
            continue
        matched = _FIELD.match(line)
        if not matched:
            if text:
                markers = {}
            continue
        yield from _field(sources, package, matched, markers)
        markers = {}


def _field(
    sources: Sources, package: str, matched: re.Match[str], markers: dict[str, list[str]]
) -> Iterator[dict[str, Any]]:
    tags = dict(_TAG.findall(matched[3]))
    name, *options = tags.get("json", "").split(",")
    type = sources.qualified(matched[2], package)
    if name == "-" or "json" not in tags:
        return
    if not name:  # embedded: its fields are the outer struct's own
        if type != "meta/v1.TypeMeta":
            via = _number(tags)
            yield from ((f | {"via": via}) if via else f for f in fields_of(sources, type))
        return
    found: dict[str, Any] = {"name": name, "type": type}
    if number := _number(tags):
        found["number"] = number
    if "omitempty" not in options and "omitzero" not in options:
        found["always"] = True
    if "omitzero" in options:
        found["omitzero"] = True
    for tag, key in (("patchStrategy", "patch"), ("patchMergeKey", "merge_key")):
        if tag in tags:
            found[key] = tags[tag]
    if "listType" in markers:
        found["list"] = markers["listType"][-1]
    if "listMapKey" in markers:
        found["keys"] = markers["listMapKey"]
    if (markers.get("structType") or markers.get("mapType") or [""])[-1] == "atomic":
        found["atomic"] = True
    yield found


def _number(tags: dict[str, str]) -> int | None:
    return next((int(part) for part in tags.get("protobuf", "").split(",") if part.isdigit()), None)


def build(modules: Path) -> dict[str, Any]:
    sources = Sources()
    sources.read(modules)
    types: dict[str, Any] = {}
    waiting = list(ROOTS)
    while waiting:
        full = waiting.pop()
        if full in types or full in BASIC or full in OPAQUE.values():
            continue
        if full in sources.structs:
            types[full] = {"fields": list(fields_of(sources, full))}
            waiting += [_element(f["type"]) for f in types[full]["fields"]]
            if _is_atomic(full, modules):
                types[full]["atomic"] = True
        elif full in sources.aliases:
            types[full] = {"alias": sources.aliases[full]}
            waiting.append(_element(sources.aliases[full]))
        else:
            raise SystemExit(f"type {full} is in none of the packages read")
    return {"version": VERSION, "types": dict(sorted(types.items()))}


def _element(type: str) -> str:
    while True:
        for prefix in ("[]", "*", "map[string]"):
            if type.startswith(prefix):
                type = type[len(prefix) :]
                break
        else:
            return type


def _is_atomic(full: str, modules: Path) -> bool:
    """A struct whose own comment says ``+structType=atomic``."""
    package, _, name = full.rpartition(".")
    for path in sorted((modules / PACKAGES[package].format(v=VERSION)).glob("*.go")):
        if path.name.startswith(("zz_", "generated")):
            continue
        if re.search(rf"\+structType=atomic\n(?://.*\n)*type {name} struct", path.read_text()):
            return True
    return False


if __name__ == "__main__":
    written = json.dumps(build(Path(sys.argv[1])), separators=(",", ":")).replace('"},{"name"', '"},\n{"name"')
    Path(__file__).with_name("types.json").write_text(written + "\n")
