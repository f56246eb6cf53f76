"""What kubectl shows of each kind, column by column, in the words of the real server's printers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fakes.clock import parse_stamp
from fakes.kube.scale import selector_text
from harness.kube.port import Json

Cell = Callable[[Json, datetime], Any]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    cell: Cell
    type: str = "string"
    wide: bool = False


def _at(obj: Any, *path: str, default: Any = None) -> Any:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return default if obj is None else obj


def _field(*path: str, default: Any = "<none>") -> Cell:
    return lambda obj, now: _at(obj, *path, default=default)


def _text(read: Callable[[Json], Any]) -> Cell:
    return lambda obj, now: read(obj)


def _wide(name: str, cell: Cell, type: str = "string") -> Column:
    return Column(name, cell, type, wide=True)


def duration(seconds: float) -> str:
    """As kubectl's HumanDuration: two units at most, coarser the longer it is."""
    s = int(seconds)
    if s < 0:
        return "<invalid>" if s < -1 else "0s"
    if s < 120:
        return f"{s}s"
    minutes, hours, days = s // 60, s // 3600, s // 86400
    if minutes < 10:
        return f"{minutes}m{s % 60}s" if s % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    return f"{days}d" if days < 730 else f"{days // 365}y"


def _since(*path: str) -> Cell:
    def cell(obj: Json, now: datetime) -> str:
        text = _at(obj, *path)
        return duration((now - parse_stamp(text)).total_seconds()) if text else "<unknown>"

    return cell


NAME = Column("Name", _field("metadata", "name"))
AGE = Column("Age", _since("metadata", "creationTimestamp"))
NAME_AND_AGE = (NAME, AGE)


def _condition(obj: Json, type: str) -> Json | None:
    return next((c for c in _at(obj, "status", "conditions", default=[]) if c.get("type") == type), None)


def _condition_status(type: str, default: str = "") -> Cell:
    return _text(lambda obj: (_condition(obj, type) or {}).get("status", default))


def _pod_ready(obj: Json) -> str:
    statuses = _at(obj, "status", "containerStatuses", default=[])
    return f"{sum(1 for s in statuses if s.get('ready'))}/{len(_at(obj, 'spec', 'containers', default=[]))}"


def _pod_status(obj: Json) -> str:
    phase = _at(obj, "status", "phase", default="Unknown")
    reason = _at(obj, "status", "reason") or phase
    running = False
    for status in reversed(_at(obj, "status", "containerStatuses", default=[])):
        waiting, ended = _at(status, "state", "waiting"), _at(status, "state", "terminated")
        if waiting and waiting.get("reason"):
            reason = waiting["reason"]
        elif ended:
            reason = ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}"
        elif status.get("ready") and _at(status, "state", "running") is not None:
            running = True
    if reason == "Completed" and running:
        ready = (_condition(obj, "Ready") or {}).get("status") == "True"
        reason = "Running" if ready else "NotReady"
    if _at(obj, "metadata", "deletionTimestamp"):
        if _at(obj, "status", "reason") == "NodeLost":
            return "Unknown"
        return "Terminating" if phase not in ("Succeeded", "Failed") else str(reason)
    return str(reason)


def _deployment_ready(obj: Json) -> str:
    return f"{_at(obj, 'status', 'readyReplicas', default=0)}/{_at(obj, 'spec', 'replicas', default=0)}"


def _restarts(obj: Json) -> str:
    return str(sum(s.get("restartCount", 0) for s in _at(obj, "status", "containerStatuses", default=[])))


def _node_status(obj: Json) -> str:
    ready = _condition(obj, "Ready")
    words = ["Unknown"] if ready is None else ["Ready" if ready.get("status") == "True" else "NotReady"]
    return ",".join([*words, "SchedulingDisabled"] if _at(obj, "spec", "unschedulable") else words)


def _node_roles(obj: Json) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = [k.removeprefix(prefix) for k in _at(obj, "metadata", "labels", default={}) if k.startswith(prefix)]
    return ",".join(sorted(roles)) or "<none>"


def _node_address(type: str) -> Cell:
    def cell(obj: Json, now: datetime) -> str:
        addresses = _at(obj, "status", "addresses", default=[])
        return str(next((a.get("address") for a in addresses if a.get("type") == type), "<none>"))

    return cell


def _containers(field: str) -> Cell:
    def cell(obj: Json, now: datetime) -> str:
        containers = _at(obj, "spec", "template", "spec", "containers", default=[])
        return ",".join(c.get(field, "") for c in containers)

    return cell


_SELECTOR = _wide("Selector", _text(lambda obj: selector_text(_at(obj, "spec", "selector", default={}))))
_POD_TEMPLATE = (_wide("Containers", _containers("name")), _wide("Images", _containers("image")), _SELECTOR)


def _service_ports(obj: Json) -> str:
    ports = _at(obj, "spec", "ports", default=[])
    shown = [f"{p.get('port')}:{p['nodePort']}" if p.get("nodePort") else str(p.get("port")) for p in ports]
    return ",".join(f"{s}/{p.get('protocol', 'TCP')}" for s, p in zip(shown, ports, strict=True)) or "<none>"


def _service_external(obj: Json) -> str:
    ingress = _at(obj, "status", "loadBalancer", "ingress", default=[])
    found = [i.get("ip") or i.get("hostname") for i in ingress] + _at(obj, "spec", "externalIPs", default=[])
    if not found and _at(obj, "spec", "type") == "LoadBalancer":
        return "<pending>"
    return ",".join(f for f in found if f) or "<none>"


def _service_selector(obj: Json) -> str:
    return ",".join(f"{k}={v}" for k, v in sorted(_at(obj, "spec", "selector", default={}).items())) or "<none>"


def _hpa_targets(obj: Json) -> str:
    current = _at(obj, "status", "currentMetrics", default=[])
    shown = []
    for i, metric in enumerate(_at(obj, "spec", "metrics", default=[])):
        kind = str(metric.get("type", ""))
        source = kind[:1].lower() + kind[1:]
        wanted = _at(metric, source, "target", default={})
        have = _at(current[i], source, "current", default={}) if i < len(current) else {}
        key = next((k for k in ("averageUtilization", "averageValue", "value") if k in wanted), "value")
        percent = "%" if key == "averageUtilization" else ""
        now = f"{have[key]}{percent}" if key in have else "<unknown>"
        label = f"{_at(metric, source, 'name', default=source)}: " if kind == "Resource" else ""
        average = " (avg)" if key == "averageValue" else ""
        shown.append(f"{label}{now}/{wanted.get(key, '<auto>')}{percent}{average}")
    return ", ".join(shown) or "<none>"


def _reference(obj: Json) -> str:
    target = _at(obj, "spec", "scaleTargetRef", default={})
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _event_object(obj: Json) -> str:
    involved = obj.get("involvedObject", {})
    return f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"


def _event_seen(*names: str) -> Cell:
    def cell(obj: Json, now: datetime) -> str:
        last = _at(obj, "series", "lastObservedTime")
        text = last or next((obj[n] for n in names if obj.get(n)), None)
        return duration((now - parse_stamp(text)).total_seconds()) if text else "<unknown>"

    return cell


def _event_source(obj: Json) -> str:
    source = obj.get("source") or {}
    component = source.get("component") or obj.get("reportingComponent", "")
    host = source.get("host") or ""
    return f"{component}, {host}" if host else str(component)


def _slice_ports(obj: Json) -> str:
    return ",".join(str(p.get("port", "*")) for p in obj.get("ports") or []) or "<unset>"


def _slice_endpoints(obj: Json) -> str:
    return ",".join(a for e in obj.get("endpoints") or [] for a in e.get("addresses") or []) or "<unset>"


def _label(name: str) -> Cell:
    return _text(lambda obj: _at(obj, "metadata", "labels", name, default=""))


_READY = Column("Ready", _condition_status("Ready"))

COLUMNS: dict[str, tuple[Column, ...]] = {
    "Pod": (
        NAME, Column("Ready", _text(_pod_ready)), Column("Status", _text(_pod_status)),
        Column("Restarts", _text(_restarts)), AGE,
        _wide("IP", _field("status", "podIP")), _wide("Node", _field("spec", "nodeName")),
        _wide("Nominated Node", _field("status", "nominatedNodeName")), _wide("Readiness Gates", _field("none")),
    ),
    "Node": (
        NAME, Column("Status", _text(_node_status)), Column("Roles", _text(_node_roles)), AGE,
        Column("Version", _field("status", "nodeInfo", "kubeletVersion", default="")),
        _wide("Internal-IP", _node_address("InternalIP")), _wide("External-IP", _node_address("ExternalIP")),
        _wide("OS-Image", _field("status", "nodeInfo", "osImage", default="<unknown>")),
        _wide("Kernel-Version", _field("status", "nodeInfo", "kernelVersion", default="<unknown>")),
        _wide("Container-Runtime", _field("status", "nodeInfo", "containerRuntimeVersion", default="<unknown>")),
    ),
    "Deployment": (
        NAME,
        Column("Ready", _text(_deployment_ready)),
        Column("Up-to-date", _field("status", "updatedReplicas", default=0), "integer"),
        Column("Available", _field("status", "availableReplicas", default=0), "integer"), AGE, *_POD_TEMPLATE,
    ),
    "ReplicaSet": (
        NAME, Column("Desired", _field("spec", "replicas", default=0), "integer"),
        Column("Current", _field("status", "replicas", default=0), "integer"),
        Column("Ready", _field("status", "readyReplicas", default=0), "integer"), AGE, *_POD_TEMPLATE,
    ),
    "HorizontalPodAutoscaler": (
        NAME, Column("Reference", _text(_reference)), Column("Targets", _text(_hpa_targets)),
        Column("MinPods", _text(lambda o: str(_at(o, "spec", "minReplicas", default="<unset>")))),
        Column("MaxPods", _field("spec", "maxReplicas", default=0), "integer"),
        Column("Replicas", _field("status", "currentReplicas", default=0), "integer"), AGE,
    ),
    "PodDisruptionBudget": (
        NAME, Column("Min Available", _text(lambda o: str(_at(o, "spec", "minAvailable", default="N/A")))),
        Column("Max Unavailable", _text(lambda o: str(_at(o, "spec", "maxUnavailable", default="N/A")))),
        Column("Allowed Disruptions", _field("status", "disruptionsAllowed", default=0), "integer"), AGE,
    ),
    "Service": (
        NAME, Column("Type", _field("spec", "type", default="ClusterIP")),
        Column("Cluster-IP", _field("spec", "clusterIP")),
        Column("External-IP", _text(_service_external)), Column("Port(s)", _text(_service_ports)), AGE,
        _wide("Selector", _text(_service_selector)),
    ),
    "Event": (
        Column("Last Seen", _event_seen("lastTimestamp", "eventTime", "firstTimestamp")),
        Column("Type", _field("type")),
        Column("Reason", _field("reason")), Column("Object", _text(_event_object)),
        _wide("Subobject", _field("involvedObject", "fieldPath", default="")), _wide("Source", _text(_event_source)),
        Column("Message", _text(lambda o: str(o.get("message", "")).strip())),
        _wide("First Seen", _event_seen("firstTimestamp", "eventTime")),
        _wide("Count", _field("count", default=1), "integer"),
        _wide("Name", _field("metadata", "name")),
    ),
    "Namespace": (NAME, Column("Status", _field("status", "phase", default="")), AGE),
    "ConfigMap": (
        NAME, Column("Data", _text(lambda o: len(o.get("data") or {}) + len(o.get("binaryData") or {})), "integer"), AGE
    ),
    "Secret": (NAME, Column("Type", _field("type")),
        Column("Data", _text(lambda o: len(o.get("data") or {})), "integer"), AGE),
    "Lease": (NAME, Column("Holder", _field("spec", "holderIdentity", default="")), AGE),
    "EndpointSlice": (
        NAME, Column("AddressType", _field("addressType", default="IPv4")), Column("Ports", _text(_slice_ports)),
        Column("Endpoints", _text(_slice_endpoints)), AGE,
    ),
    "PriorityClass": (
        NAME, Column("Value", _field("value", default=0), "integer"),
        Column("Global-Default", _field("globalDefault", default=False), "boolean"), AGE,
        Column("PreemptionPolicy", _field("preemptionPolicy")),
    ),
    "PodGroup": (
        NAME, Column("Min Count", _field("spec", "schedulingPolicy", "gang", "minCount")),
        Column("Scheduled", _condition_status("PodGroupInitiallyScheduled", "Unknown")), AGE,
    ),
    "NodePool": (
        NAME, Column("NodeClass", _field("spec", "template", "spec", "nodeClassRef", "name", default="")),
        Column("Nodes", _field("status", "nodes", default=0), "integer"), _READY, AGE,
        _wide("Weight", _field("spec", "weight", default="")),
    ),
    "NodeClaim": (
        NAME, Column("Type", _label("node.kubernetes.io/instance-type")),
        Column("Capacity", _label("karpenter.sh/capacity-type")),
        Column("Zone", _label("topology.kubernetes.io/zone")),
        Column("Node", _field("status", "nodeName", default="")), _READY, AGE,
        _wide("ID", _field("status", "providerID", default="")), _wide("NodePool", _label("karpenter.sh/nodepool")),
    ),
}  # fmt: skip
