"""Decisions about the pods of a ReplicaSet. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from fakes.clock import parse_stamp
from fakes.controllers.objects import condition_of, is_ready, name_of, node_of, phase_of
from harness.kube.port import Json

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_RANK = {"Pending": 0, "Unknown": 1, "Running": 2}


def pods_to_delete(active: Sequence[Json], surplus: int, related: Iterable[Json] = ()) -> list[Json]:
    """The pods that serve least go first: unbound, pending, unready, cheap, crowded on their node, young.

    ``related`` are the active pods of all ReplicaSets of the same owner; they tell how crowded a node is.
    """
    if surplus <= 0:
        return []
    crowd = Counter(node_of(p) for p in related or active)
    return sorted(active, key=lambda p: _keep_rank(p, crowd[node_of(p)]))[:surplus]


def _keep_rank(pod: Json, crowd: int) -> tuple[Any, ...]:
    ready = is_ready(pod)
    return (
        bool(node_of(pod)),
        _PHASE_RANK.get(phase_of(pod), 2),
        ready,
        _deletion_cost(pod),
        -crowd,
        -_epoch_s(condition_of(pod, "Ready"), "lastTransitionTime") if ready else 0.0,
        -restarts(pod),
        -_epoch_s(pod["metadata"], "creationTimestamp"),
        name_of(pod),
    )


def _deletion_cost(pod: Json) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0  # the API server refuses such a value; an older object may still carry one


def restarts(pod: Json) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return max((int(s.get("restartCount") or 0) for s in statuses), default=0)


def _epoch_s(holder: Json | None, key: str) -> float:
    text = (holder or {}).get(key)
    return parse_stamp(text).timestamp() if text else 0.0


def available_in_s(pod: Json, min_ready_s: float, now: datetime) -> float | None:
    """Seconds until the ready pod counts as available (0: it does already); None while it is not ready."""
    ready = condition_of(pod, "Ready")
    if ready is None or ready.get("status") != "True":
        return None
    if min_ready_s <= 0:
        return 0.0
    due = parse_stamp(ready["lastTransitionTime"]) + timedelta(seconds=min_ready_s)
    return max(0.0, (due - now).total_seconds())


def pod_from_template(owner: Json, reference: Json, name: str) -> Json:
    template = owner["spec"]["template"]
    meta = template.get("metadata") or {}
    metadata: Json = {
        "name": name,
        "generateName": f"{name_of(owner)}-",
        "namespace": owner["metadata"].get("namespace", ""),
        "labels": dict(meta.get("labels") or {}),
        "ownerReferences": [reference],
    }
    for part in ("annotations", "finalizers"):
        if meta.get(part):
            metadata[part] = meta[part]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
