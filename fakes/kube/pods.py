"""The pod's own subresources: binding and eviction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fakes.config import PlantedBug
from fakes.kube.api import Api, Write
from fakes.kube.codec import clone
from fakes.kube.delete_options import DeleteOptions, of_body
from fakes.kube.deletion import Deleted
from fakes.kube.metadata import check_preconditions
from fakes.kube.ownership import Writer, track
from fakes.kube.selectors import match_label_selector
from fakes.kube.status import (
    bad_request,
    conflict,
    failure,
    not_this_object,
    required,
    status_body,
    unsupported,
)
from fakes.kube.store import Stored
from harness.kube import port
from harness.kube.port import ApiError, Json, api_error

_SERVER = "kube-apiserver"
_TERMINAL = ("Succeeded", "Failed")


def named_body(body: Any, kind: str, api_version: str) -> Json:
    """The body of a Binding or Eviction; one of another kind is 400."""
    if not isinstance(body, dict):
        raise bad_request(f"the body is no {kind}: a JSON object is needed")
    stated, version = body.get("kind") or kind, body.get("apiVersion") or api_version
    if stated != kind:
        group = api_version.rpartition("/")[0] or "core"
        number = str(version).rpartition("/")[2]
        what = f'{stated} in version "{number}" cannot be handled as a {kind}'
        raise bad_request(f"{what}: converting (v1.{stated}) to ({group}.{kind}): unknown conversion")
    return body


def bind(api: Api, namespace: str, name: str, body: Json, write: Write) -> None:
    """Writes the node into the pod. Nobody checks that the node exists: that is the scheduler's part."""
    meta, target = _map(body.get("metadata")), _map(body.get("target"))
    if meta.get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    node, kind = target.get("name"), target.get("kind", "")
    if kind not in ("", "Node"):
        cause = unsupported("target.kind", kind, ["Node", "<empty>"])
        raise failure(422, "Invalid", str(cause), {"causes": [cause.to_json()]})
    if not isinstance(node, str) or not node:
        cause = required("target.name")
        raise failure(422, "Invalid", str(cause), {"causes": [cause.to_json()]})
    old = api.get(port.POD, namespace, name)
    before = old.object["metadata"]
    if meta.get("uid") and meta["uid"] != before["uid"]:
        raise not_this_object(port.POD, before, str(meta["uid"]))
    if meta.get("resourceVersion") and meta["resourceVersion"] != before["resourceVersion"]:
        raise conflict(port.POD, name)
    if before.get("deletionTimestamp"):
        raise _unbound(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if bound := old.object["spec"].get("nodeName"):
        raise _unbound(name, f'pod {name} is already assigned to node "{bound}"')
    if old.object["spec"].get("schedulingGates"):
        raise _unbound(name, f"pod {name} has non-empty .spec.schedulingGates")
    # Where it was nominated for has no meaning any more.
    status = {k: v for k, v in old.object["status"].items() if k != "nominatedNodeName"}
    condition = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": api.store.wall.stamp(),
    }
    notes = _map(meta.get("annotations"))
    known = before.get("annotations") or {}
    new_meta = before | {"annotations": known | {str(k): str(v) for k, v in notes.items()}} if notes else dict(before)
    new = old.object | {
        "metadata": new_meta,
        "spec": old.object["spec"] | {"nodeName": node},
        "status": status | {"conditions": with_condition(status.get("conditions"), condition)},
    }
    api.commit(api.kind(port.POD), old, new, write)


def _map(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _unbound(name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    return failure(409, "Conflict", message, {"name": name, "kind": "pods/binding"})


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
        ignored = PlantedBug.EVICTION_IGNORES_BUDGET in api.store.bugs
        if budgets and not ignored and not _unhealthy_may_go(old.object, budgets[0].object):
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
    given = body.get("deleteOptions")
    options = DeleteOptions() if given is None else of_body(given)
    return replace(options, dry_run=options.dry_run or write.dry_run)


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
        raise _refused(_why_none(name, needs, has, status))
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


def _why_none(name: str, needs: int, has: int, status: Json) -> str:
    conditions = status.get("conditions") or []
    told: Json = next(
        (c for c in conditions if c.get("type") == "DisruptionAllowed" and c.get("status") == "False"), {}
    )
    message = told.get("message")
    if message and told.get("reason") == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
    if has <= needs:
        return f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
    if message:
        return f"The disruption budget {name} does not allow evicting pods currently ({told['reason']}): {message}"
    return f"The disruption budget {name} does not allow evicting pods currently"


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
        "lastProbeTime": None,
        "lastTransitionTime": api.store.wall.stamp(),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    status = clone(old.object["status"])
    status["conditions"] = with_condition(status.get("conditions"), condition)
    new = old.object | {"metadata": dict(old.object["metadata"]), "status": status}
    return api.commit(api.kind(port.POD), old, new, write)
