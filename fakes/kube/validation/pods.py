"""Pods and their templates (pkg/apis/core/validation of kubernetes v1.37): the rules that people run into."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from fakes.kube.names import label_key_problems, label_problems
from fakes.kube.status import Cause, bad_value, duplicate, forbidden_field, missing, required, unsupported
from fakes.kube.validation.amounts import not_negative, port_of, resources_of
from fakes.kube.validation.metadata import labels_of
from harness.kube.port import Json

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def pod(obj: Json) -> Iterator[Cause]:
    yield from pod_spec(obj["spec"], "spec")


def pod_spec(spec: Json, path: str) -> Iterator[Cause]:
    volumes: set[str] = set()
    yield from _volumes(spec.get("volumes") or [], f"{path}.volumes", volumes)
    grace_s = spec.get("terminationGracePeriodSeconds", 30)
    seen: set[str] = set()
    containers = spec.get("containers") or []
    if not containers:
        yield required(f"{path}.containers")
    for i, container in enumerate(containers):
        yield from _container(container, f"{path}.containers[{i}]", seen, volumes, grace_s)
    for i, container in enumerate(spec.get("initContainers") or []):
        yield from _container(container, f"{path}.initContainers[{i}]", seen, volumes, grace_s)
    yield from one_of(spec, "restartPolicy", ("Always", "OnFailure", "Never"), path)
    yield from one_of(spec, "dnsPolicy", ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"), path)
    yield from labels_of(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        yield bad_value(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    yield from _affinity((spec.get("affinity") or {}).get("nodeAffinity") or {}, f"{path}.affinity.nodeAffinity")
    for i, toleration in enumerate(spec.get("tolerations") or []):
        yield from _toleration(toleration, f"{path}.tolerations[{i}]")
    yield from _gates(spec.get("schedulingGates") or [], f"{path}.schedulingGates")
    for i, spread in enumerate(spec.get("topologySpreadConstraints") or []):
        yield from _spread(spread, f"{path}.topologySpreadConstraints[{i}]")


def one_of(obj: Json, field: str, allowed: Sequence[str], path: str) -> Iterator[Cause]:
    if field in obj and obj[field] not in allowed:
        yield unsupported(f"{path}.{field}".lstrip("."), obj[field], allowed)


def _volumes(volumes: list[Json], path: str, names: set[str]) -> Iterator[Cause]:
    for i, volume in enumerate(volumes):
        at, name = f"{path}[{i}]", volume.get("name", "")
        sources = [key for key in volume if key != "name"]
        for source in sources[1:]:
            yield forbidden_field(f"{at}.{source}", "may not specify more than 1 volume type")
        if not name:
            yield required(f"{at}.name")
        elif problems := label_problems(name):
            for problem in problems:
                yield bad_value(f"{at}.name", name, problem)
        elif name in names:
            yield duplicate(f"{at}.name", name)
        names.add(name)


def _container(container: Json, path: str, seen: set[str], volumes: set[str], grace_s: int) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield required(f"{path}.name")
    for problem in label_problems(name) if name else ():
        yield bad_value(f"{path}.name", name, problem)
    if name and name in seen:
        yield duplicate(f"{path}.name", name)
    seen.add(name)
    if not container.get("image"):
        yield required(f"{path}.image")
    yield from _lifecycle(container.get("lifecycle") or {}, f"{path}.lifecycle", grace_s)
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(kind)) is not None:
            yield from _probe(probe, f"{path}.{kind}", kind)
    yield from _ports(container.get("ports") or [], f"{path}.ports")
    yield from _env(container.get("env") or [], f"{path}.env")
    yield from _mounts(container.get("volumeMounts") or [], f"{path}.volumeMounts", volumes)
    yield from one_of(container, "imagePullPolicy", ("Always", "IfNotPresent", "Never"), path)
    yield from resources_of(container.get("resources") or {}, f"{path}.resources")


def _ports(ports: list[Json], path: str) -> Iterator[Cause]:
    names: set[str] = set()
    for i, entry in enumerate(ports):
        at, name, number = f"{path}[{i}]", entry.get("name", ""), entry.get("containerPort", 0)
        if name:
            problems = _port_name_problems(name)
            for problem in problems:
                yield bad_value(f"{at}.name", name, problem)
            if not problems and name in names:
                yield duplicate(f"{at}.name", name)
            names.add(name)
        if number == 0:
            yield required(f"{at}.containerPort")
        else:
            yield from port_of(number, f"{at}.containerPort")
        if entry.get("hostPort"):
            yield from port_of(entry["hostPort"], f"{at}.hostPort")
        yield from one_of(entry, "protocol", _PROTOCOLS, at)


def _port_name_problems(name: str) -> list[str]:
    """Of an IANA service name."""
    found = []
    if len(name) > 15:
        found.append("must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]+", name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    elif not re.search(r"[a-z]", name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def _env(entries: list[Json], path: str) -> Iterator[Cause]:
    for i, entry in enumerate(entries):
        if not entry.get("name"):
            yield required(f"{path}[{i}].name")
        if entry.get("value") and entry.get("valueFrom") is not None:
            yield bad_value(f"{path}[{i}].valueFrom", "", "may not be specified when `value` is not empty")


def _mounts(mounts: list[Json], path: str, volumes: set[str]) -> Iterator[Cause]:
    places: set[str] = set()
    for i, mount in enumerate(mounts):
        name, place = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required(f"{path}[{i}].name")
        elif name not in volumes:
            yield missing(f"{path}[{i}].name", name)
        if not place:
            yield required(f"{path}[{i}].mountPath")
        elif place in places:
            yield bad_value(f"{path}[{i}].mountPath", place, "must be unique")
        places.add(place)


def _handler(handler: Json, kinds: Sequence[str], path: str) -> Iterator[Cause]:
    given = [kind for kind in kinds if handler.get(kind) is not None]
    for kind in given[1:]:
        yield forbidden_field(f"{path}.{kind}", "may not specify more than 1 handler type")
    if not given:
        yield required(path, "must specify a handler type")


def _probe(probe: Json, path: str, kind: str) -> Iterator[Cause]:
    yield from _handler(probe, _HANDLERS, path)
    for field in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        yield from not_negative(probe, field, path)
    if kind != "readinessProbe" and probe.get("successThreshold", 1) != 1:
        yield bad_value(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _lifecycle(lifecycle: Json, path: str, grace_s: int) -> Iterator[Cause]:
    for hook in ("postStart", "preStop"):
        handler = lifecycle.get(hook)
        if handler is None:
            continue
        yield from _handler(handler, _HOOKS, f"{path}.{hook}")
        seconds = (handler.get("sleep") or {}).get("seconds", 0)
        if seconds < 0 or seconds > grace_s:
            text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
            yield bad_value(f"{path}.{hook}.sleep", seconds, text)


def _toleration(toleration: Json, path: str) -> Iterator[Cause]:
    operator, effect = toleration.get("operator", ""), toleration.get("effect", "")
    for problem in label_key_problems(toleration["key"]) if toleration.get("key") else ():
        yield bad_value(f"{path}.key", toleration["key"], problem)
    if not toleration.get("key") and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield bad_value(f"{path}.operator", operator, text)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield bad_value(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator == "Exists" and toleration.get("value"):
        yield bad_value(f"{path}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
    elif operator not in ("", "Equal", "Exists"):
        yield unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{path}.effect", effect, _EFFECTS)


def _gates(gates: list[Json], path: str) -> Iterator[Cause]:
    seen: set[Any] = set()
    for i, gate in enumerate(gates):
        name = gate.get("name", "")
        for problem in label_key_problems(name):
            yield bad_value(f"{path}[{i}]", name, problem)
        if name in seen:
            yield duplicate(f"{path}[{i}]", name)
        seen.add(name)


def _affinity(affinity: Json, path: str) -> Iterator[Cause]:
    wanted = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if wanted is None:
        return
    at = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    terms = wanted.get("nodeSelectorTerms") or []
    if not terms:
        yield required(at, "must have at least one node selector term")
    for i, term in enumerate(terms):
        for j, expression in enumerate(term.get("matchExpressions") or []):
            yield from _requirement(expression, f"{at}[{i}].matchExpressions[{j}]")


def _requirement(expression: Json, path: str) -> Iterator[Cause]:
    operator, values = expression.get("operator", ""), expression.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden_field(
                f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield bad_value(f"{path}.operator", operator, "not a valid selector operator")
    for problem in label_key_problems(expression.get("key", "")):
        yield bad_value(f"{path}.key", expression.get("key", ""), problem)


def _spread(spread: Json, path: str) -> Iterator[Cause]:
    skew = spread.get("maxSkew", 0)
    if skew <= 0:
        yield bad_value(f"{path}.maxSkew", skew, "must be greater than zero")
    if not spread.get("topologyKey"):
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from one_of(spread, "whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway"), path)


_MUTABLE = ("activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates")


def pod_change(new: Json, old: Json) -> Iterator[Cause]:
    known = {g.get("name") for g in old["spec"].get("schedulingGates") or []}
    for i, gate in enumerate(new["spec"].get("schedulingGates") or []):
        if gate.get("name") not in known:
            text = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield forbidden_field(f"spec.schedulingGates[{i}].name", text)
    kept = new["spec"].get("tolerations") or []
    lost = [t for t in old["spec"].get("tolerations") or [] if t not in kept]
    if lost or _fixed_part(new["spec"]) != _fixed_part(old["spec"]):
        yield forbidden_field("spec", "pod updates may not change fields other than `spec.containers[*].image`,"
                              "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
                              "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be "
                              "set to 1 if it was previously negative)")  # fmt: skip


def _fixed_part(spec: Json) -> Json:
    fixed = {k: v for k, v in spec.items() if k not in _MUTABLE}
    for field in ("containers", "initContainers"):
        if field in fixed:
            fixed[field] = [{k: v for k, v in c.items() if k != "image"} for c in fixed[field]]
    return fixed
