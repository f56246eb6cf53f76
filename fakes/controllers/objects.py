"""What controllers ask of objects: owners, conditions, the states of a pod. Pure; nothing is changed in place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness.kube.port import ApiError, Json, Resource


def name_of(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def namespace_of(obj: Json) -> str:
    return str(obj["metadata"].get("namespace", ""))


def uid_of(obj: Json) -> str:
    return str(obj["metadata"].get("uid", ""))


def generation_of(obj: Json) -> int:
    return int(obj["metadata"].get("generation") or 0)


def is_terminating(obj: Json) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def controller_of(obj: Json) -> Json | None:
    """The owner reference that says ``controller: true``."""
    for ref in obj["metadata"].get("ownerReferences") or ():
        if ref.get("controller"):
            found: Json = ref
            return found
    return None


def controller_uid(obj: Json) -> str | None:
    ref = controller_of(obj)
    return None if ref is None else str(ref.get("uid", ""))


def is_controlled_by(obj: Json, owner: Json) -> bool:
    ref = controller_of(obj)
    return ref is not None and ref.get("uid") == uid_of(owner)


def controller_reference(resource: Resource, owner: Json) -> Json:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition_of(obj: Json, type: str) -> Json | None:
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == type:
            found: Json = condition
            return found
    return None


def condition_status(obj: Json, type: str) -> str | None:
    found = condition_of(obj, type)
    return None if found is None else str(found.get("status"))


def with_condition(conditions: Sequence[Json] | None, new: Json, stamp: str) -> list[Json]:
    """``conditions`` with ``new`` in its place; ``lastTransitionTime`` moves only when the status does."""
    old = next((c for c in conditions or () if c.get("type") == new["type"]), None)
    since = stamp if old is None or old.get("status") != new["status"] else old.get("lastTransitionTime", stamp)
    made = {**new, "lastTransitionTime": since}
    if old is None:
        return [*(conditions or ()), made]
    return [made if c is old else c for c in conditions or ()]


def same_status(one: Json, other: Json) -> bool:
    """Whether two statuses say the same: counts of zero, empty lists and nulls are left out when they are stored."""
    return _said(one) == _said(other)


def _said(status: Json) -> Json:
    return {k: v for k, v in status.items() if v not in (0, None, "", [], {})}


def phase_of(pod: Json) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_terminal(pod: Json) -> bool:
    """Its containers have ended for good."""
    return phase_of(pod) in ("Succeeded", "Failed")


def is_active(pod: Json) -> bool:
    """Counts as a replica: a pod on its way out, or ended, has to be replaced."""
    return not is_terminating(pod) and not is_terminal(pod)


def is_ready(pod: Json) -> bool:
    return condition_status(pod, "Ready") == "True"


def node_of(pod: Json) -> str:
    """Empty while the pod is not bound."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def pod_ip(pod: Json) -> str:
    return str((pod.get("status") or {}).get("podIP") or "")


def merged(base: Json, **parts: Any) -> Json:
    """A copy of ``base`` with whole top-level parts replaced; the other parts are shared, never changed."""
    return {**base, **parts}


def is_namespace_terminating(error: ApiError) -> bool:
    causes = (error.body.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


def sorted_by_name(objects: Iterable[Json]) -> list[Json]:
    return sorted(objects, key=lambda o: (namespace_of(o), name_of(o)))
