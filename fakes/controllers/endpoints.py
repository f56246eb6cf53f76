"""Which endpoints a Service has, and what is said about each. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from fakes.controllers.objects import (
    is_ready,
    is_terminal,
    is_terminating,
    name_of,
    namespace_of,
    node_of,
    pod_ip,
    uid_of,
)
from fakes.kube.selectors import match_labels
from harness.kube.port import Json

SERVICE_LABEL = "kubernetes.io/service-name"
MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
ZONE_LABEL = "topology.kubernetes.io/zone"

Ports = tuple[tuple[tuple[str, str | int], ...], ...]
"""The ports of a slice in a form that can be a key."""


def selects(service: Json, pod: Json) -> bool:
    selector = service["spec"].get("selector")
    if not selector or not match_labels(selector, pod["metadata"].get("labels") or {}):
        return False
    return namespace_of(service) == namespace_of(pod)


def belongs(pod: Json) -> bool:
    """An endpoint leaves only when its pod has ended: a terminating one is still listed, as not ready."""
    return bool(pod_ip(pod)) and not is_terminal(pod)


def endpoint(pod: Json, service: Json, zones: Mapping[str, str]) -> Json:
    serving, terminating = is_ready(pod), is_terminating(pod)
    published = bool(service["spec"].get("publishNotReadyAddresses"))
    made: Json = {
        "addresses": [pod_ip(pod)],
        "conditions": {
            "ready": published or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)},
    }
    if node := node_of(pod):
        made["nodeName"] = node
        if node in zones:
            made["zone"] = zones[node]
    return made


def slice_ports(service: Json, pod: Json) -> Ports:
    """A named target port may differ from pod to pod; pods that lack the name have no such endpoint port."""
    found = []
    for port in service["spec"].get("ports") or []:
        number = _target_port(port, pod)
        if number is None:
            continue
        entry: dict[str, str | int] = {
            "name": port.get("name") or "", "port": number, "protocol": port.get("protocol") or "TCP",
        }  # fmt: skip
        if port.get("appProtocol"):
            entry["appProtocol"] = port["appProtocol"]
        found.append(tuple(sorted(entry.items())))
    return tuple(found)


def _target_port(port: Json, pod: Json) -> int | None:
    target = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    for container in pod["spec"].get("containers") or []:
        for offered in container.get("ports") or []:
            same_protocol = (offered.get("protocol") or "TCP") == (port.get("protocol") or "TCP")
            if offered.get("name") == target and same_protocol:
                return int(offered["containerPort"])
    return None
