"""What the API server refuses with 422: the rules that people and controllers really run into."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from fakes.kube.selectors import match_label_selector
from fakes.kube.status import Cause, bad_value, duplicate, forbidden_field, required, unsupported
from harness.kube.port import Json

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_QUANTITY = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]+))?")
_DOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_QUANTITY_TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

Check = Callable[[Json], Iterator[Cause]]


def validate(obj: Json) -> list[Cause]:
    causes = list(_metadata(obj["metadata"]))
    check = _CHECKS.get(obj["kind"])
    return causes + list(check(obj)) if check else causes


def validate_change(new: Json, old: Json, subresource: str | None = None) -> list[Cause]:
    """What may not change once it is written."""
    check = _CHANGES.get(new["kind"]) if subresource is None else None
    return list(check(new, old)) if check else []


def _metadata(meta: Json) -> Iterator[Cause]:
    name = meta.get("name", "")
    if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        yield bad_value("metadata.name", name, _DOMAIN_TEXT)
    yield from _labels(meta.get("labels") or {}, "metadata.labels")
    for key in meta.get("annotations") or {}:
        if not _is_qualified(key):
            yield bad_value(
                "metadata.annotations", key, "name part must consist of alphanumeric characters, '-', '_' or '.'"
            )


def _labels(labels: Json, path: str) -> Iterator[Cause]:
    for key, value in labels.items():
        if not _is_qualified(key):
            yield bad_value(path, key, "name part must consist of alphanumeric characters, '-', '_' or '.'")
        if value and (len(value) > 63 or not _LABEL_NAME.fullmatch(value)):
            yield bad_value(path, value, "a valid label must be an empty string or consist of alphanumeric characters, "
                            "'-', '_' or '.', and must start and end with an alphanumeric character")  # fmt: skip


def _is_qualified(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return (
        len(name) <= 63
        and bool(_LABEL_NAME.fullmatch(name))
        and (not slash or bool(_SUBDOMAIN.fullmatch(prefix.lower())))
    )


def _pod(obj: Json) -> Iterator[Cause]:
    yield from _pod_spec(obj.get("spec") or {}, "spec")


def _pod_spec(spec: Json, path: str) -> Iterator[Cause]:
    containers = spec.get("containers") or []
    if not containers:
        yield required(f"{path}.containers")
    seen: set[str] = set()
    for field in ("initContainers", "containers"):
        for i, container in enumerate(spec.get(field) or []):
            yield from _container(container, f"{path}.{field}[{i}]", seen)
    policy = spec.get("restartPolicy", "Always")
    if policy not in ("Always", "OnFailure", "Never"):
        yield unsupported(f"{path}.restartPolicy", policy, ("Always", "OnFailure", "Never"))
    grace = spec.get("terminationGracePeriodSeconds", 30)
    if grace < 0:
        yield bad_value(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0")
    volumes: set[str] = set()
    for i, volume in enumerate(spec.get("volumes") or []):
        name = volume.get("name", "")
        if not name:
            yield required(f"{path}.volumes[{i}].name")
        elif name in volumes:
            yield duplicate(f"{path}.volumes[{i}].name", name)
        volumes.add(name)


def _container(container: Json, path: str, seen: set[str]) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield required(f"{path}.name")
    elif name in seen:
        yield duplicate(f"{path}.name", name)
    elif len(name) > 63 or "." in name or not _SUBDOMAIN.fullmatch(name):
        yield bad_value(f"{path}.name", name, "a lowercase RFC 1123 label must consist of lower case alphanumeric "
                        "characters or '-', and must start and end with an alphanumeric character")  # fmt: skip
    seen.add(name)
    if not container.get("image"):
        yield required(f"{path}.image")
    for i, entry in enumerate(container.get("ports") or []):
        yield from _port(entry.get("containerPort"), f"{path}.ports[{i}].containerPort")
    yield from _resources(container.get("resources") or {}, f"{path}.resources")


def _resources(resources: Json, path: str) -> Iterator[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            if not is_quantity(amount):
                yield bad_value(f"{path}.{kind}[{name}]", amount, _QUANTITY_TEXT)
    for name, asked in requests.items():
        if not _is_extended(name) or not is_quantity(asked):
            continue
        if name not in limits:
            yield required(f"{path}.limits", f"Limit must be set for non overcommitable resources: {name}")
        elif str(limits[name]) != str(asked):
            detail = f"must be equal to {name} limit of {limits[name]}"
            yield bad_value(f"{path}.requests", asked, detail)


def _is_extended(name: str) -> bool:
    return "/" in name and not name.partition("/")[0].endswith("kubernetes.io")


def is_quantity(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float) or (isinstance(value, str) and bool(_QUANTITY.fullmatch(value)))


def _port(value: Any, path: str) -> Iterator[Cause]:
    if value is None:
        yield required(path)
    elif not 1 <= value <= 65535:
        yield bad_value(path, value, "must be between 1 and 65535, inclusive")


def _workload(obj: Json) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    replicas = spec.get("replicas", 1)
    if replicas < 0:
        yield bad_value("spec.replicas", replicas, "must be greater than or equal to 0")
    selector = spec.get("selector")
    yield from _selector(selector or {}, "spec.selector")
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector is None:
        yield required("spec.selector")
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        kind = "deployment" if obj["kind"] == "Deployment" else "replicaset"
        yield bad_value("spec.selector", selector, f"empty selector is invalid for {kind}")
    elif not match_label_selector(selector, labels):
        yield bad_value("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from _labels(labels, "spec.template.metadata.labels")
    yield from _pod_spec(template.get("spec") or {}, "spec.template.spec")
    policy = (template.get("spec") or {}).get("restartPolicy", "Always")
    if policy != "Always":
        yield unsupported("spec.template.spec.restartPolicy", policy, ("Always",))


def _selector(selector: Json, path: str) -> Iterator[Cause]:
    yield from _labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for i, expression in enumerate(selector.get("matchExpressions") or []):
        at, operator, values = f"{path}.matchExpressions[{i}]", expression.get("operator"), expression.get("values")
        if not _is_qualified(expression.get("key", "")):
            yield bad_value(f"{at}.key", expression.get("key", ""), "name part must be non-empty")
        if operator in ("In", "NotIn") and not values:
            yield required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and values:
            yield forbidden_field(f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        elif operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            yield bad_value(f"{at}.operator", operator, "not a valid selector operator")


def _service(obj: Json) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        yield required("spec.ports")
    for i, entry in enumerate(ports):
        yield from _port(entry.get("port"), f"spec.ports[{i}].port")
        if len(ports) > 1 and not entry.get("name"):
            yield required(f"spec.ports[{i}].name")


def _pdb(obj: Json) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from _selector(spec.get("selector") or {}, "spec.selector")
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield bad_value("spec", "minAvailable", "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        value = spec.get(field)
        if isinstance(value, str) and not re.fullmatch(r"[0-9]+%", value):
            yield bad_value(
                f"spec.{field}", value, "a valid percent string must be a numeric string followed by an ending '%'"
            )
        elif isinstance(value, str) and int(value[:-1]) > 100:
            yield bad_value(f"spec.{field}", value, "must not be greater than 100%")
        elif isinstance(value, int) and value < 0:
            yield bad_value(f"spec.{field}", value, "must be greater than or equal to 0")


def _hpa(obj: Json) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    target = spec.get("scaleTargetRef") or {}
    for field in ("kind", "name"):
        if not target.get(field):
            yield required(f"spec.scaleTargetRef.{field}")
    low, high = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    if low < 0:
        yield bad_value("spec.minReplicas", low, "must be greater than or equal to 0")
    elif low == 0 and not any(m.get("type") in ("Object", "External") for m in spec.get("metrics") or []):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden_field("spec.metrics", text)
    if high < 1:
        yield bad_value("spec.maxReplicas", high, "must be greater than 0")
    elif high < low:
        yield bad_value("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")


def _pod_group(obj: Json) -> Iterator[Cause]:
    policy = (obj.get("spec") or {}).get("schedulingPolicy")
    if not policy:
        yield required("spec.schedulingPolicy")
        return
    if len([p for p in ("basic", "gang") if p in policy]) != 1:
        yield bad_value("spec.schedulingPolicy", sorted(policy), "must specify exactly one of: `basic`, `gang`")
    gang = policy.get("gang")
    if gang is not None and gang.get("minCount", 0) < 1:
        yield bad_value(
            "spec.schedulingPolicy.gang.minCount", gang.get("minCount", 0), "must be greater than or equal to 1"
        )


def _priority_class(obj: Json) -> Iterator[Cause]:
    if "value" in obj and obj["value"] > 1_000_000_000 and not obj["metadata"]["name"].startswith("system-"):
        yield forbidden_field("value", "maximum allowed value of a user defined priority is 1000000000")


def _node(obj: Json) -> Iterator[Cause]:
    for i, taint in enumerate((obj.get("spec") or {}).get("taints") or []):
        if not taint.get("key"):
            yield required(f"spec.taints[{i}].key")
        effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
        if taint.get("effect") not in effects:
            yield unsupported(f"spec.taints[{i}].effect", taint.get("effect", ""), effects)


_CHECKS: dict[str, Check] = {
    "Pod": _pod,
    "Deployment": _workload,
    "ReplicaSet": _workload,
    "StatefulSet": _workload,
    "Service": _service,
    "PodDisruptionBudget": _pdb,
    "HorizontalPodAutoscaler": _hpa,
    "PodGroup": _pod_group,
    "PriorityClass": _priority_class,
    "Node": _node,
}


def _selector_is_fixed(new: Json, old: Json) -> Iterator[Cause]:
    before, after = old["spec"].get("selector"), (new.get("spec") or {}).get("selector")
    if before != after:
        yield bad_value("spec.selector", after, "field is immutable")


_POD_MUTABLE = ("activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates")


def _pod_is_fixed(new: Json, old: Json) -> Iterator[Cause]:
    if _fixed_part(new.get("spec") or {}) != _fixed_part(old["spec"]):
        yield forbidden_field("spec", "pod updates may not change fields other than `spec.containers[*].image`,"
                              "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
                              "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be "
                              "set to 1 if it was previously negative)")  # fmt: skip


def _fixed_part(spec: Json) -> Json:
    fixed = {k: v for k, v in spec.items() if k not in _POD_MUTABLE}
    for field in ("containers", "initContainers"):
        if field in fixed:
            fixed[field] = [{k: v for k, v in c.items() if k != "image"} for c in fixed[field]]
    return fixed


def _provider_is_fixed(new: Json, old: Json) -> Iterator[Cause]:
    before, after = (old.get("spec") or {}).get("providerID"), (new.get("spec") or {}).get("providerID")
    if before and before != after:
        yield forbidden_field("spec.providerID", 'node updates may not change providerID except from "" to valid')


_CHANGES: dict[str, Callable[[Json, Json], Iterator[Cause]]] = {
    "Deployment": _selector_is_fixed,
    "ReplicaSet": _selector_is_fixed,
    "StatefulSet": _selector_is_fixed,
    "Pod": _pod_is_fixed,
    "Node": _provider_is_fixed,
}
