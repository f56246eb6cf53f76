"""Services, configuration, nodes, leases, slices, priorities, groups, definitions."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from functools import lru_cache

from fakes.kube.names import label_key_problems, label_value_problems
from fakes.kube.status import Cause, bad_value, duplicate, forbidden_field, required, too_long, unsupported
from fakes.kube.validation.amounts import port_of
from fakes.kube.validation.pods import one_of
from harness.kube.port import Json

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_DATA_MAX = 1024 * 1024
_SECRET_KEYS = {"kubernetes.io/basic-auth": ("username", "password"), "kubernetes.io/ssh-auth": ("ssh-privatekey",),
                "kubernetes.io/tls": ("tls.crt", "tls.key")}  # fmt: skip
_SYSTEM = ("system-node-critical", "system-cluster-critical")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def service(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    ports, kind = spec.get("ports") or [], spec.get("type", "ClusterIP")
    if kind == "ExternalName":
        if not spec.get("externalName"):
            yield required("spec.externalName")
    elif not ports and spec.get("clusterIP") != "None":
        yield required("spec.ports")
    names: set[str] = set()
    for i, entry in enumerate(ports):
        yield from _service_port(entry, f"spec.ports[{i}]", len(ports) > 1, names)
    yield from one_of(spec, "sessionAffinity", ("ClientIP", "None"), "spec")
    if kind not in _SERVICE_TYPES:
        yield unsupported("spec.type", kind, _SERVICE_TYPES)
    seen: set[tuple[str, int]] = set()
    for i, entry in enumerate(ports):
        key = entry.get("protocol", "TCP"), entry.get("port", 0)
        if key in seen:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield duplicate(f"spec.ports[{i}]", shown)
        seen.add(key)


def _service_port(entry: Json, path: str, must_have_name: bool, names: set[str]) -> Iterator[Cause]:
    name = entry.get("name", "")
    if must_have_name and not name:
        yield required(f"{path}.name")
    elif name and name in names:
        yield duplicate(f"{path}.name", name)
    names.add(name)
    yield from port_of(entry.get("port", 0), f"{path}.port")
    yield from one_of(entry, "protocol", _PROTOCOLS, path)
    target = entry.get("targetPort")
    if isinstance(target, int):
        yield from port_of(target, f"{path}.targetPort")


def service_change(new: Json, old: Json) -> Iterator[Cause]:
    before, after = old["spec"], new["spec"]
    if before.get("type") == "ExternalName" or after.get("type") == "ExternalName":
        return
    if before.get("clusterIP") and before["clusterIP"] != after.get("clusterIP"):
        yield bad_value("spec.clusterIPs[0]", [after.get("clusterIP", "")], "may not change once set")


def config_map(obj: Json) -> Iterator[Cause]:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    for key in sorted(data):
        yield from _key(key, f"data[{key}]")
        if key in binary:
            yield bad_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in sorted(binary):
        yield from _key(key, f"binaryData[{key}]")
    if (
        sum(len(v.encode(errors="replace")) for v in data.values()) + sum(len(v) * 3 // 4 for v in binary.values())
        > _DATA_MAX
    ):
        yield too_long("[]", "", _DATA_MAX)


def _key(key: str, path: str) -> Iterator[Cause]:
    if not re.fullmatch(r"[-._a-zA-Z0-9]+", key):
        yield bad_value(path, key, _KEY_TEXT)


def secret(obj: Json) -> Iterator[Cause]:
    data = obj.get("data") or {}
    for key in sorted(data):
        yield from _key(key, f"data[{key}]")
    if sum(len(v) * 3 // 4 for v in data.values()) > _DATA_MAX:
        yield too_long("data", "", _DATA_MAX)
    wanted = _SECRET_KEYS.get(obj.get("type", ""), ())
    if wanted and (obj["type"] == "kubernetes.io/tls" or not any(key in data for key in wanted)):
        for key in wanted:
            if key not in data:
                yield required(f"data[{key}]")


def data_change(new: Json, old: Json) -> Iterator[Cause]:
    if new["kind"] == "Secret" and new.get("type") != old.get("type"):
        yield bad_value("type", new.get("type"), "field is immutable")
    if not old.get("immutable"):
        return
    text = "field is immutable when `immutable` is set"
    if not new.get("immutable"):
        yield forbidden_field("immutable", text)
    for field in ("data", "binaryData"):
        if (new.get(field) or {}) != (old.get(field) or {}):
            yield forbidden_field(field, text)


def node(obj: Json) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(obj["spec"].get("taints") or []):
        path, key, effect = f"metadata.taints[{i}]", taint.get("key", ""), taint.get("effect", "")
        for problem in label_key_problems(key):
            yield bad_value(f"{path}.key", key, problem)
        for problem in label_value_problems(taint.get("value", "")):
            yield bad_value(f"{path}.value", taint["value"], problem)
        if effect not in _EFFECTS:
            yield unsupported(f"{path}.effect", effect, _EFFECTS) if effect else required(f"{path}.effect")
        if (key, effect) in seen:
            shown = {"Key": key, "Value": taint.get("value", ""), "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            found = duplicate(path, shown)
            text = f"{found.message}: taints must be unique by key and effect pair"
            yield Cause(found.field, found.reason, text)
        seen.add((key, effect))


def node_change(new: Json, old: Json) -> Iterator[Cause]:
    before, after = old["spec"].get("providerID"), new["spec"].get("providerID")
    if before and before != after:
        yield bad_value("spec.providerID", None, "field cannot be modified once set")


def event(obj: Json) -> Iterator[Cause]:
    involved = obj.get("involvedObject") or {}
    namespace = involved.get("namespace", "")
    mine = obj["metadata"].get("namespace", "")
    if (namespace or mine != "default") and namespace != mine:
        yield bad_value("involvedObject.namespace", namespace, "does not match event.namespace")


def lease(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    if spec.get("leaseDurationSeconds", 1) <= 0:
        yield bad_value("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0")
    if spec.get("leaseTransitions", 0) < 0:
        yield bad_value("spec.leaseTransitions", spec["leaseTransitions"], "must be greater than or equal to 0")


def endpoint_slice(obj: Json) -> Iterator[Cause]:
    kind = obj.get("addressType", "")
    if not kind:
        yield required("addressType")
        return
    if kind not in ("FQDN", "IPv4", "IPv6"):
        yield unsupported("addressType", kind, ("FQDN", "IPv4", "IPv6"))
        return
    endpoints = obj.get("endpoints") or []
    if kind != "FQDN" and all(_is_plain(e.get("addresses")) for e in endpoints):
        return
    for i, endpoint in enumerate(endpoints):
        addresses = endpoint.get("addresses") or []
        if not addresses:
            yield required(f"endpoints[{i}].addresses")
        for j, address in enumerate(addresses):
            if kind != "FQDN":
                yield from _address(address, f"endpoints[{i}].addresses[{j}]")


def _is_plain(addresses: list[str] | None) -> bool:
    """One address, and a good one: a slice is looked through whole whenever one of its hundred endpoints changes."""
    return addresses is not None and len(addresses) == 1 and not _address_troubles(addresses[0])


def _address(text: str, path: str) -> Iterator[Cause]:
    for trouble in _address_troubles(text):
        yield bad_value(path, text, trouble)


@lru_cache(maxsize=65536)
def _address_troubles(text: str) -> tuple[str, ...]:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return ("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",)
    troubles = (
        (found.is_unspecified, f"may not be unspecified ({text})"),
        (found.is_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (found.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
    )
    return tuple(said for is_so, said in troubles if is_so)


def slice_change(new: Json, old: Json) -> Iterator[Cause]:
    if new.get("addressType") != old.get("addressType"):
        yield bad_value("addressType", None, "field is immutable")


def priority_class(obj: Json) -> Iterator[Cause]:
    name = obj["metadata"]["name"]
    if name.startswith("system-") and name not in _SYSTEM:
        text = "priority class names with 'system-' prefix are reserved for system use only. error: "
        yield forbidden_field("metadata.name", f"{text}{name} is not a known system priority class")
    if obj.get("value", 0) > 1_000_000_000 and not name.startswith("system-"):
        yield forbidden_field("value", "maximum allowed value of a user defined priority is 1000000000")
    yield from one_of(obj, "preemptionPolicy", ("PreemptLowerPriority", "Never"), "")


def priority_change(new: Json, old: Json) -> Iterator[Cause]:
    for field in ("value", "preemptionPolicy"):
        if new.get(field) != old.get(field):
            yield forbidden_field(field, "may not be changed in an update.")


def pod_group(obj: Json) -> Iterator[Cause]:
    policy = obj["spec"].get("schedulingPolicy") or {}
    stated = [p for p in ("basic", "gang") if p in policy]
    if not stated:
        yield bad_value("spec.schedulingPolicy", "", "must specify one of: `basic`, `gang`")
    elif len(stated) > 1:
        yield bad_value("spec.schedulingPolicy", "{basic, gang}", "must specify exactly one of: `basic`, `gang`")
    gang = policy.get("gang")
    if gang is not None:
        least = gang.get("minCount", 0)
        if least == 0:
            yield required("spec.schedulingPolicy.gang.minCount")
        elif least < 0:
            yield bad_value("spec.schedulingPolicy.gang.minCount", least, "must be greater than 0")


def definition(obj: Json) -> Iterator[Cause]:
    """The rules without which a CRD cannot be served."""
    spec = obj["spec"]
    names, versions = spec["names"], spec.get("versions") or []
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if obj["metadata"]["name"] != wanted:
        text = 'must be spec.names.plural+"."+spec.group'
        yield bad_value("metadata.name", obj["metadata"]["name"], text)
    if not spec.get("group"):
        yield required("spec.group")
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        yield unsupported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced"))
    if sum(1 for v in versions if v.get("storage")) != 1:
        yield bad_value("spec.versions", versions, "must have exactly one version marked as storage version")
    for i, version in enumerate(versions):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield required(f"spec.versions[{i}].schema.openAPIV3Schema")
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            yield required(f"spec.names.{field}")
