"""What kubectl shows of each kind, column by column, in the words of the real server's printers."""

from __future__ import annotations

from datetime import datetime

from fakes.clock import parse_stamp
from fakes.kube.cells import (
    AGE,
    NAME,
    Cell,
    Column,
    at,
    condition,
    condition_status,
    duration,
    field,
    text,
    wide,
)
from fakes.kube.pod_cells import pod_ready, pod_status, restarts
from fakes.kube.scale import selector_text
from harness.kube.port import Json


def _deployment_ready(obj: Json) -> str:
    return f"{at(obj, 'status', 'readyReplicas', default=0)}/{at(obj, 'spec', 'replicas', default=0)}"


def _node_status(obj: Json) -> str:
    ready = condition(obj, "Ready")
    words = ["Unknown"] if ready is None else ["Ready" if ready.get("status") == "True" else "NotReady"]
    return ",".join([*words, "SchedulingDisabled"] if at(obj, "spec", "unschedulable") else words)


def _node_roles(obj: Json) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = [k.removeprefix(prefix) for k in at(obj, "metadata", "labels", default={}) if k.startswith(prefix)]
    return ",".join(sorted(roles)) or "<none>"


def _node_address(type: str) -> Cell:
    def cell(obj: Json, now: datetime) -> str:
        addresses = at(obj, "status", "addresses", default=[])
        return str(next((a.get("address") for a in addresses if a.get("type") == type), "<none>"))

    return cell


def _containers(name: str) -> Cell:
    def cell(obj: Json, now: datetime) -> str:
        containers = at(obj, "spec", "template", "spec", "containers", default=[])
        return ",".join(c.get(name, "") for c in containers)

    return cell


_SELECTOR = wide("Selector", text(lambda obj: selector_text(at(obj, "spec", "selector", default={}))))
_POD_TEMPLATE = (wide("Containers", _containers("name")), wide("Images", _containers("image")), _SELECTOR)


def _service_ports(obj: Json) -> str:
    ports = at(obj, "spec", "ports", default=[])
    shown = [f"{p.get('port')}:{p['nodePort']}" if p.get("nodePort") else str(p.get("port")) for p in ports]
    return ",".join(f"{s}/{p.get('protocol', 'TCP')}" for s, p in zip(shown, ports, strict=True)) or "<none>"


def _service_external(obj: Json) -> str:
    ingress = at(obj, "status", "loadBalancer", "ingress", default=[])
    found = [i.get("ip") or i.get("hostname") for i in ingress] + at(obj, "spec", "externalIPs", default=[])
    if not found and at(obj, "spec", "type") == "LoadBalancer":
        return "<pending>"
    return ",".join(f for f in found if f) or "<none>"


def _service_selector(obj: Json) -> str:
    return ",".join(f"{k}={v}" for k, v in sorted(at(obj, "spec", "selector", default={}).items())) or "<none>"


def _hpa_targets(obj: Json) -> str:
    current = at(obj, "status", "currentMetrics", default=[])
    metrics = at(obj, "spec", "metrics", default=[])
    shown = [_hpa_target(m, current[i] if i < len(current) else {}) for i, m in enumerate(metrics)]
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + more if shown else "<none>"


def _hpa_target(metric: Json, status: Json) -> str:
    kind = str(metric.get("type", ""))
    source = kind[:1].lower() + kind[1:]
    wanted, have = at(metric, source, "target", default={}), at(status, source, "current", default={})
    if kind in ("Resource", "ContainerResource"):
        label = f"{at(metric, source, 'name', default='')}: "
        if "averageValue" in wanted:
            return f"{label}{have.get('averageValue', '<unknown>')}/{wanted['averageValue']}"
        now = f"{have['averageUtilization']}%" if "averageUtilization" in have else "<unknown>"
        return f"{label}{now}/" + (f"{wanted['averageUtilization']}%" if "averageUtilization" in wanted else "<auto>")
    if kind == "Pods":
        return f"{have.get('averageValue', '<unknown>')}/{wanted.get('averageValue', '0')}"
    if "averageValue" in wanted:
        return f"{have.get('averageValue', '<unknown>')}/{wanted['averageValue']} (avg)"
    return f"{have.get('value', '<unknown>')}/{wanted.get('value', '0')}"


def _reference(obj: Json) -> str:
    target = at(obj, "spec", "scaleTargetRef", default={})
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _event_object(obj: Json) -> str:
    involved = obj.get("involvedObject", {})
    kind, name = str(involved.get("kind", "")).lower(), involved.get("name")
    return f"{kind}/{name}" if name else kind


def _event_seen(*names: str) -> Cell:
    def cell(obj: Json, now: datetime) -> str:
        last = at(obj, "series", "lastObservedTime")
        text = last or next((obj[n] for n in names if obj.get(n)), None)
        return duration((now - parse_stamp(text)).total_seconds()) if text else "<unknown>"

    return cell


def _event_source(obj: Json) -> str:
    source = obj.get("source") or {}
    component = source.get("component") or obj.get("reportingComponent", "")
    instance = source.get("host") or obj.get("reportingInstance", "")
    return f"{component}, {instance}" if instance else str(component)


def _event_count(obj: Json) -> int:
    return int(at(obj, "series", "count") or obj.get("count") or 1)


def _kernel(obj: Json) -> str:
    info = at(obj, "status", "nodeInfo", default={})
    kernel = info.get("kernelVersion") or "<unknown>"
    return f"{kernel} ({info['architecture']})" if info.get("architecture") else str(kernel)


def _or(default: str, *path: str) -> Cell:
    return text(lambda obj: at(obj, *path) or default)


def _group_status(obj: Json) -> str:
    if disrupted := condition(obj, "DisruptionTarget"):
        return str(disrupted.get("reason", ""))
    placed = condition(obj, "PodGroupInitiallyScheduled")
    return "Pending" if placed is None else "Scheduled" if placed.get("status") == "True" else "Unschedulable"


def _group_policy(obj: Json) -> str:
    return "Gang" if at(obj, "spec", "schedulingPolicy", "gang") is not None else "Basic"


def _slice_ports(obj: Json) -> str:
    return ",".join(str(p.get("port", "*")) for p in obj.get("ports") or []) or "<unset>"


def _slice_endpoints(obj: Json) -> str:
    return ",".join(a for e in obj.get("endpoints") or [] for a in e.get("addresses") or []) or "<unset>"


def _label(name: str) -> Cell:
    return text(lambda obj: at(obj, "metadata", "labels", name, default=""))


_READY = Column("Ready", condition_status("Ready"))

COLUMNS: dict[str, tuple[Column, ...]] = {
    "Pod": (
        NAME, Column("Ready", text(pod_ready)), Column("Status", text(pod_status)),
        Column("Restarts", restarts), AGE,
        wide("IP", field("status", "podIP")), wide("Node", field("spec", "nodeName")),
        wide("Nominated Node", field("status", "nominatedNodeName")), wide("Readiness Gates", field("none")),
    ),
    "Node": (
        NAME, Column("Status", text(_node_status)), Column("Roles", text(_node_roles)), AGE,
        Column("Version", field("status", "nodeInfo", "kubeletVersion", default="")),
        wide("Internal-IP", _node_address("InternalIP")), wide("External-IP", _node_address("ExternalIP")),
        wide("OS-Image", _or("<unknown>", "status", "nodeInfo", "osImage")),
        wide("Kernel-Version", text(_kernel)),
        wide("Container-Runtime", _or("<unknown>", "status", "nodeInfo", "containerRuntimeVersion")),
    ),
    "Deployment": (
        NAME,
        Column("Ready", text(_deployment_ready)),
        Column("Up-to-date", field("status", "updatedReplicas", default=0)),
        Column("Available", field("status", "availableReplicas", default=0)), AGE, *_POD_TEMPLATE,
    ),
    "ReplicaSet": (
        NAME, Column("Desired", field("spec", "replicas", default=0), "integer"),
        Column("Current", field("status", "replicas", default=0), "integer"),
        Column("Ready", field("status", "readyReplicas", default=0), "integer"), AGE, *_POD_TEMPLATE,
    ),
    "StatefulSet": (NAME, Column("Ready", text(_deployment_ready)), AGE, *_POD_TEMPLATE),
    "LeaderWorkerSet": (
        NAME, Column("Ready", field("status", "readyReplicas", default=0)),
        Column("Desired", field("spec", "replicas", default=1)),
        Column("Up-to-date", field("status", "updatedReplicas", default=0)), AGE,
    ),
    "HorizontalPodAutoscaler": (
        NAME, Column("Reference", text(_reference)), Column("Targets", text(_hpa_targets)),
        Column("MinPods", text(lambda o: str(at(o, "spec", "minReplicas", default="<unset>")))),
        Column("MaxPods", field("spec", "maxReplicas", default=0)),
        Column("Replicas", field("status", "currentReplicas", default=0)), AGE,
    ),
    "PodDisruptionBudget": (
        NAME, Column("Min Available", text(lambda o: str(at(o, "spec", "minAvailable", default="N/A")))),
        Column("Max Unavailable", text(lambda o: str(at(o, "spec", "maxUnavailable", default="N/A")))),
        Column("Allowed Disruptions", field("status", "disruptionsAllowed", default=0), "integer"), AGE,
    ),
    "Service": (
        NAME, Column("Type", field("spec", "type", default="ClusterIP")),
        Column("Cluster-IP", field("spec", "clusterIP")),
        Column("External-IP", text(_service_external)), Column("Port(s)", text(_service_ports)), AGE,
        wide("Selector", text(_service_selector)),
    ),
    "Event": (
        Column("Last Seen", _event_seen("lastTimestamp", "eventTime", "firstTimestamp")),
        Column("Type", field("type")),
        Column("Reason", field("reason")), Column("Object", text(_event_object)),
        wide("Subobject", field("involvedObject", "fieldPath", default="")), wide("Source", text(_event_source)),
        Column("Message", text(lambda o: str(o.get("message", "")).strip())),
        wide("First Seen", _event_seen("firstTimestamp", "eventTime")),
        wide("Count", text(_event_count)),
        wide("Name", field("metadata", "name")),
    ),
    "Namespace": (NAME, Column("Status", field("status", "phase", default="")), AGE),
    "ConfigMap": (
        NAME, Column("Data", text(lambda o: len(o.get("data") or {}) + len(o.get("binaryData") or {}))), AGE
    ),
    "Secret": (NAME, Column("Type", field("type")),
        Column("Data", text(lambda o: len(o.get("data") or {}))), AGE),
    "Lease": (NAME, Column("Holder", field("spec", "holderIdentity", default="")), AGE),
    "EndpointSlice": (
        NAME, Column("AddressType", field("addressType", default="IPv4")), Column("Ports", text(_slice_ports)),
        Column("Endpoints", text(_slice_endpoints)), AGE,
    ),
    "PriorityClass": (
        NAME, Column("Value", field("value", default=0), "integer"),
        Column("Global-Default", field("globalDefault", default=False), "boolean"), AGE,
        Column("PreemptionPolicy", field("preemptionPolicy")),
    ),
    "PodGroup": (
        NAME, Column("Policy", text(_group_policy)),
        Column("Workload", field("spec", "workloadRef", "workloadName")), Column("Status", text(_group_status)), AGE,
    ),
    "NodePool": (
        NAME, Column("NodeClass", field("spec", "template", "spec", "nodeClassRef", "name", default="")),
        Column("Nodes", field("status", "nodes", default=0), "integer"), _READY, AGE,
        wide("Weight", field("spec", "weight", default="")),
    ),
    "NodeClaim": (
        NAME, Column("Type", _label("node.kubernetes.io/instance-type")),
        Column("Capacity", _label("karpenter.sh/capacity-type")),
        Column("Zone", _label("topology.kubernetes.io/zone")),
        Column("Node", field("status", "nodeName", default="")), _READY, AGE,
        wide("ID", field("status", "providerID", default="")), wide("NodePool", _label("karpenter.sh/nodepool")),
    ),
}  # fmt: skip
