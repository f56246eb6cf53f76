"""What a Deployment's conditions say about its rollout. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from fakes.clock import parse_stamp
from fakes.controllers.objects import condition_of, name_of
from fakes.controllers.rollout import is_complete, room_of, wanted_replicas
from harness.kube.port import Json

PROGRESSING = "Progressing"
PROGRESS_DEADLINE_S = 600
NO_DEADLINE = 2**31 - 1
"""This value of progressDeadlineSeconds switches the estimate off."""
AVAILABLE_REASON = "NewReplicaSetAvailable"
TIMED_OUT_REASON = "ProgressDeadlineExceeded"
PAUSED_REASON = "DeploymentPaused"


def deadline_s(deployment: Json) -> int | None:
    given = deployment["spec"].get("progressDeadlineSeconds")
    given = PROGRESS_DEADLINE_S if given is None else int(given)
    return None if given == NO_DEADLINE else given


def condition(type: str, status: str, reason: str, message: str, stamp: str) -> Json:
    said = {"type": type, "status": status, "reason": reason, "message": message}
    return said | {"lastUpdateTime": stamp, "lastTransitionTime": stamp}


def with_deployment_condition(conditions: Sequence[Json], new: Json, *, touch: bool = False) -> list[Json]:
    """A Deployment's condition stays as it is while status and reason do, whatever the message, except with ``touch``.
    One that changes moves to the end of the list."""
    old = next((c for c in conditions if c["type"] == new["type"]), None)
    if old is not None and not touch and (old["status"], old.get("reason")) == (new["status"], new["reason"]):
        return list(conditions)
    if old is not None and old["status"] == new["status"]:
        new = {**new, "lastTransitionTime": old.get("lastTransitionTime", new["lastTransitionTime"])}
    return [*(c for c in conditions if c["type"] != new["type"]), new]


def without(conditions: Sequence[Json], type: str) -> list[Json]:
    return [c for c in conditions if c["type"] != type]


def available_condition(deployment: Json, counts: Json, conditions: Sequence[Json], stamp: str) -> list[Json]:
    if counts["availableReplicas"] >= wanted_replicas(deployment) - room_of(deployment).unavailable:
        said = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        said = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return with_deployment_condition(conditions, condition("Available", *said, stamp))


def paused_condition(deployment: Json, stamp: str) -> Json | None:
    """What to write first when a Deployment was paused or resumed; None when nothing is to be said."""
    old = condition_of(deployment, PROGRESSING)
    reason = None if old is None else old.get("reason")
    if deadline_s(deployment) is None or reason == TIMED_OUT_REASON:
        return None
    if deployment["spec"].get("paused"):
        if reason == PAUSED_REASON:
            return None
        return condition(PROGRESSING, "Unknown", PAUSED_REASON, "Deployment is paused", stamp)
    if reason != PAUSED_REASON:
        return None
    return condition(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed", stamp)


def with_progress(
    deployment: Json, new: Json | None, counts: Json, conditions: Sequence[Json], now: datetime, stamp: str,
    scale: float,
) -> list[Json]:  # fmt: skip
    """``conditions`` with what is to be said of the rollout. ``scale``: scenario seconds per clock second."""
    allowed_s = deadline_s(deployment)
    if allowed_s is None:
        return without(conditions, PROGRESSING)
    old = condition_of(deployment, PROGRESSING)
    if old is not None and old.get("reason") == AVAILABLE_REASON and counts["updatedReplicas"] == counts["replicas"]:
        return list(conditions)  # a finished rollout that lost or gained pods is no new rollout
    subject = f'ReplicaSet "{name_of(new)}"' if new is not None else f'Deployment "{name_of(deployment)}"'
    if is_complete(deployment, counts):
        message = f"{subject} has successfully progressed."
        done = condition(PROGRESSING, "True", AVAILABLE_REASON, message, stamp)
        return with_deployment_condition(conditions, done)
    if has_moved(deployment.get("status") or {}, counts):
        moved = condition(PROGRESSING, "True", "ReplicaSetUpdated", f"{subject} is progressing.", stamp)
        return with_deployment_condition(conditions, moved, touch=True)
    if old is not None and old.get("reason") != AVAILABLE_REASON and overdue_s(old, allowed_s, now, scale) < 0:
        late = condition(PROGRESSING, "False", TIMED_OUT_REASON, f"{subject} has timed out progressing.", stamp)
        return with_deployment_condition(conditions, late)
    return list(conditions)


def overdue_s(progressing: Json, allowed_s: float, now: datetime, scale: float) -> float:
    """Clock seconds that are left of the deadline; negative when it has passed."""
    since = parse_stamp(progressing.get("lastUpdateTime") or progressing["lastTransitionTime"])
    return (since + timedelta(seconds=allowed_s / scale) - now).total_seconds()


def has_moved(old: Json, new: Json) -> bool:
    """Whether a rollout came closer to its end between two statuses."""
    old_former = int(old.get("replicas") or 0) - int(old.get("updatedReplicas") or 0)
    return bool(
        new["updatedReplicas"] > int(old.get("updatedReplicas") or 0)
        or new["replicas"] - new["updatedReplicas"] < old_former
        or new["readyReplicas"] > int(old.get("readyReplicas") or 0)
        or new["availableReplicas"] > int(old.get("availableReplicas") or 0)
    )


def failure_condition(new: Json | None, owned: Sequence[Json]) -> Json | None:
    """A ReplicaSet's trouble with making pods shows on its Deployment; that of the newest one first."""
    for each in [*([new] if new is not None else []), *owned]:
        found = condition_of(each, "ReplicaFailure")
        if found is not None:
            since = found.get("lastTransitionTime", "")
            said = {k: found.get(k, "") for k in ("type", "status", "reason", "message")}
            return said | {"lastUpdateTime": since, "lastTransitionTime": since}
    return None
