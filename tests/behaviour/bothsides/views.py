"""What of each kind is compared: an object's fields as tracks, each a value that changes over time. Pure.

Counts may pass through different values on their way, depending on which watch event came first; what is said in
conditions, taints and finalizers may not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bothsides.names import Names

from fakes.controllers.objects import controller_of
from harness.kube.port import Json

Tracks = dict[str, Any]
"""Track → value at one moment; values are hashable once made canonical."""


def may_pass(track: str) -> bool:
    """Whether a value of the track that did not last is no state of its own."""
    return track.startswith("count ") or track in ("endpoints", "spec.replicas", "metrics")


def _conditions(obj: Json, names: Names, *types: str) -> Tracks:
    found = {}
    for c in (obj.get("status") or {}).get("conditions") or []:
        if not types or c["type"] in types:
            said = (c["status"], c.get("reason") or "", names.text(c.get("message") or ""))
            found[f"condition {c['type']}"] = said
    return found


def _common(obj: Json, names: Names) -> Tracks:
    meta = obj["metadata"]
    owner = controller_of(obj)
    return {
        "owner": names.alias(owner["kind"], owner["name"]) if owner else "",
        "deleting": bool(meta.get("deletionTimestamp")),
        "finalizers": tuple(sorted(meta.get("finalizers") or ())),
    }


def _counts(obj: Json, *fields: str) -> Tracks:
    status = obj.get("status") or {}
    # Before a controller has looked there are no counts, which is not the same as counts of zero.
    return {f"count {f}": status.get(f) or 0 for f in fields} if status else {}


def pod(obj: Json, names: Names) -> Tracks:
    status, spec = obj.get("status") or {}, obj["spec"]
    return {
        **_common(obj, names),
        **_conditions(obj, names, "PodScheduled", "DisruptionTarget", "Ready"),
        "phase": status.get("phase", ""),
        "reason": (status.get("reason") or "", names.text(status.get("message") or "")),
        "node": spec.get("nodeName") or "",
        "nominated": status.get("nominatedNodeName") or "",
        "gates": tuple(g["name"] for g in spec.get("schedulingGates") or ()),
        "grace": obj["metadata"].get("deletionGracePeriodSeconds", ""),
    }


def deployment(obj: Json, names: Names) -> Tracks:
    fields = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
    return {
        **_common(obj, names),
        **_conditions(obj, names),
        **_counts(obj, *fields, "terminatingReplicas"),
        "spec.replicas": obj["spec"].get("replicas"),
        "revision": (obj["metadata"].get("annotations") or {}).get("deployment.kubernetes.io/revision", ""),
    }


def replica_set(obj: Json, names: Names) -> Tracks:
    annotations = obj["metadata"].get("annotations") or {}
    noted = {k.rpartition("/")[2]: v for k, v in annotations.items() if k.startswith("deployment.kubernetes.io/")}
    return {
        **_common(obj, names),
        **_conditions(obj, names),
        **_counts(obj, "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas"),
        "spec.replicas": obj["spec"].get("replicas"),
        "noted": tuple(sorted(noted.items())),
    }


def hpa(obj: Json, names: Names) -> Tracks:
    status = obj.get("status") or {}
    return {
        **_common(obj, names),
        **_conditions(obj, names),
        **_counts(obj, "currentReplicas", "desiredReplicas"),
        **({"metrics": canonical(status.get("currentMetrics") or [])} if status else {}),
        "scaled": bool(status.get("lastScaleTime")),
    }


def budget(obj: Json, names: Names) -> Tracks:
    status = obj.get("status") or {}
    fields = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    noted = len(status.get("disruptedPods") or {})
    return {**_common(obj, names), **_conditions(obj, names), **_counts(obj, *fields), "noted": noted}


def node(obj: Json, names: Names) -> Tracks:
    taints = [(t["key"], t["effect"], bool(t.get("timeAdded"))) for t in obj["spec"].get("taints") or []]
    return {
        **_common(obj, names),
        **_conditions(obj, names),
        "taints": tuple(sorted(taints)),
        "unschedulable": bool(obj["spec"].get("unschedulable")),
    }


def endpoint_slice(obj: Json, names: Names) -> Tracks:
    listed = []
    for e in obj.get("endpoints") or []:
        ref = e.get("targetRef") or {}
        said = canonical(e.get("conditions") or {})
        listed.append((names.alias(ref.get("kind", ""), ref.get("name", "")), said, e.get("zone") or ""))
    return {
        **_common(obj, names),
        "endpoints": tuple(sorted(listed)),
        "ports": canonical(obj.get("ports") or []),
        "type": obj.get("addressType"),
    }


def pod_group(obj: Json, names: Names) -> Tracks:
    return {**_common(obj, names), **_conditions(obj, names)}


def node_claim(obj: Json, names: Names) -> Tracks:
    """Which of several taints of a node it names is whichever it came upon first."""
    tracks = {**_common(obj, names), **_conditions(obj, names)}
    for track, said in tracks.items():
        if isinstance(said, tuple) and said[1:2] == ("KnownEphemeralTaintsExist",):
            tracks[track] = (*said[:2], "")
    return tracks


def namespace(obj: Json, names: Names) -> Tracks:
    return {**_common(obj, names), "phase": (obj.get("status") or {}).get("phase", ""), **_conditions(obj, names)}


def plain(obj: Json, names: Names) -> Tracks:
    return _common(obj, names)


VIEWS: dict[str, Callable[[Json, Names], Tracks]] = {
    "Pod": pod,
    "Deployment": deployment,
    "ReplicaSet": replica_set,
    "HorizontalPodAutoscaler": hpa,
    "PodDisruptionBudget": budget,
    "Node": node,
    "EndpointSlice": endpoint_slice,
    "PodGroup": pod_group,
    "NodeClaim": node_claim,
    "Namespace": namespace,
}


def canonical(value: Any) -> Any:
    """Hashable, with the keys of objects in order."""
    if isinstance(value, dict):
        return tuple((k, canonical(v)) for k, v in sorted(value.items()))
    return tuple(canonical(v) for v in value) if isinstance(value, list) else value
