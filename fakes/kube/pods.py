"""The pod's own subresources: binding and eviction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fakes.kube.api import Api, Write
from fakes.kube.codec import clone
from fakes.kube.deletion import Deleted, DeleteOptions
from fakes.kube.metadata import check_preconditions
from fakes.kube.ownership import Writer, track
from fakes.kube.selectors import match_label_selector
from fakes.kube.status import bad_request, conflict, failure, invalid, required, status_body
from fakes.kube.store import Stored
from harness.kube import port
from harness.kube.port import ApiError, Json, api_error

_SERVER = "kube-apiserver"
_TERMINAL = ("Succeeded", "Failed")


def bind(api: Api, namespace: str, name: str, body: Any, write: Write) -> None:
    """Writes the node into the pod. Nobody checks that the node exists: that is the scheduler's part."""
    old = api.get(port.POD, namespace, name)
    target = body.get("target") if isinstance(body, dict) else None
    node = target.get("name") if isinstance(target, dict) else None
    if not isinstance(node, str) or not node:
        raise invalid(port.POD, name, [required("target.name")])
    meta = body.get("metadata") if isinstance(body.get("metadata"), dict) else {}
    check_preconditions(port.POD, old.object["metadata"], name, meta.get("uid"), meta.get("resourceVersion"))
    if old.object["metadata"].get("deletionTimestamp"):
        raise conflict(port.POD, name, f"pod {name} is being deleted, cannot be assigned to a host", "binding")
    if bound := old.object["spec"].get("nodeName"):
        raise conflict(port.POD, name, f'pod {name} is already assigned to node "{bound}"', "binding")
    # Where it was nominated for has no meaning any more.
    status = {k: v for k, v in old.object["status"].items() if k != "nominatedNodeName"}
    condition = {
        "type": "PodScheduled",
        "observedGeneration": old.object["metadata"].get("generation", 1),
        "status": "True",
        "lastTransitionTime": api.store.wall.stamp(),
    }
    new = old.object | {
        "metadata": dict(old.object["metadata"]),
        "spec": old.object["spec"] | {"nodeName": node},
        "status": status | {"conditions": with_condition(status.get("conditions"), condition)},
    }
    api.commit(api.kind(port.POD), old, new, write)


def with_condition(conditions: list[Json] | None, condition: Json) -> list[Json]:
    """Replaces the condition of the same type in its place, or adds it."""
    found = list(conditions or [])
    for i, present in enumerate(found):
        if present.get("type") == condition["type"]:
            found[i] = condition
            return found
    return [*found, condition]


def evict(api: Api, namespace: str, name: str, body: Any, write: Write) -> Deleted:
    """Deletes the pod if the disruption budgets allow it."""
    options = _eviction_options(name, body, write)
    write = replace(write, dry_run=options.dry_run)
    old = api.get(port.POD, namespace, name)
    meta = old.object["metadata"]
    check_preconditions(port.POD, meta, name, options.uid, options.version)
    if not _needs_no_budget(old.object):
        budgets = _budgets(api, old.object)
        if len(budgets) > 1:
            text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise failure(500, "", text)
        if budgets and not _unhealthy_may_go(old.object, budgets[0].object):
            _spend(api, budgets[0], name, write)
    if not write.dry_run and not meta.get("deletionTimestamp"):
        old = _mark_disrupted(api, old, write)
    return api.deleter.delete(port.POD, old, options)


def _eviction_options(name: str, body: Any, write: Write) -> DeleteOptions:
    if not isinstance(body, dict):
        raise bad_request("the body is no Eviction: a JSON object is needed")
    meta = body.get("metadata")
    stated = meta.get("name") if isinstance(meta, dict) else None
    if stated != name:
        raise bad_request("name in URL does not match name in Eviction object")
    return delete_options(body.get("deleteOptions"), write.dry_run)


def delete_options(raw: Any, dry_run: bool) -> DeleteOptions:
    """Of a DeleteOptions object."""
    if raw is None:
        return DeleteOptions(dry_run=dry_run)
    preconditions = raw.get("preconditions") or {} if isinstance(raw, dict) else None
    if not isinstance(preconditions, dict):
        raise bad_request("the body is no DeleteOptions")
    grace_s = raw.get("gracePeriodSeconds")
    if grace_s is not None and (isinstance(grace_s, bool) or not isinstance(grace_s, int)):
        raise bad_request("DeleteOptions.gracePeriodSeconds must be an integer")
    propagation = raw.get("propagationPolicy")
    if propagation is None and raw.get("orphanDependents"):
        propagation = "Orphan"
    if propagation not in (None, "", "Background", "Foreground", "Orphan"):
        raise bad_request(f"DeleteOptions.propagationPolicy: {propagation!r} is none of Background, Foreground, Orphan")
    return DeleteOptions(
        grace_s,
        _optional_text(preconditions.get("uid")),
        _optional_text(preconditions.get("resourceVersion")),
        propagation or None,
        dry_run or bool(raw.get("dryRun")),
    )


def _optional_text(value: Any) -> str | None:
    return None if value is None else str(value)


def _needs_no_budget(pod: Json) -> bool:
    """A pod that serves nobody, or is on its way out already, disrupts nothing."""
    phase = pod["status"].get("phase")
    return phase in _TERMINAL or phase == "Pending" or bool(pod["metadata"].get("deletionTimestamp"))


def _budgets(api: Api, pod: Json) -> list[Stored]:
    labels = pod["metadata"].get("labels") or {}
    found = api.store.items(port.PDB, pod["metadata"]["namespace"])
    return [s for s in found if match_label_selector((s.object.get("spec") or {}).get("selector"), labels)]


def _is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _unhealthy_may_go(pod: Json, budget: Json) -> bool:
    if _is_ready(pod):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _spend(api: Api, budget: Stored, pod: str, write: Write) -> None:
    """Takes one allowed disruption, or refuses."""
    meta, status = budget.object["metadata"], dict(budget.object.get("status") or {})
    name = meta["name"]
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        text = f"The disruption budget {name} is still being processed by the server."
        raise _refused(text, retry_after_s=10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed <= 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _refused(f"The disruption budget {name} needs {needs} healthy pods and has {has} currently")
    status["disruptionsAllowed"] = allowed - 1
    status["disruptedPods"] = (status.get("disruptedPods") or {}) | {pod: api.store.wall.stamp()}
    if allowed == 1:
        status["conditions"] = with_condition(
            status.get("conditions"),
            {
                "type": "DisruptionAllowed",
                "status": "False",
                "observedGeneration": status.get("observedGeneration", 0),
                "lastTransitionTime": api.store.wall.stamp(),
                "reason": "InsufficientPods",
                "message": "",
            },
        )
    new = budget.object | {"metadata": dict(meta), "status": status}
    kind = api.kind(port.PDB)
    writer = Writer(_SERVER, "Update", port.PDB.api_version, "status")
    track(kind, budget.object, new, writer, api.store.wall.stamp())
    api.commit(kind, budget, new, write)


def _refused(cause: str, retry_after_s: int | None = None) -> ApiError:
    details: Json = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry_after_s is not None:
        details["retryAfterSeconds"] = retry_after_s
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return api_error(429, status_body(429, "TooManyRequests", message, details))


def _mark_disrupted(api: Api, old: Stored, write: Write) -> Stored:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastTransitionTime": api.store.wall.stamp(),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    status = clone(old.object["status"])
    status["conditions"] = with_condition(status.get("conditions"), condition)
    new = old.object | {"metadata": dict(old.object["metadata"]), "status": status}
    return api.commit(api.kind(port.POD), old, new, write)
