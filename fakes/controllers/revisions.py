"""What a Deployment notes on its ReplicaSets, and the ReplicaSet of a new template. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from fakes.controllers.objects import controller_reference, merged, name_of, namespace_of
from fakes.controllers.rollout import (
    HASH_LABEL,
    SetState,
    is_rolling,
    new_set_size,
    room_of,
    template_hash,
    wanted_replicas,
)
from harness.kube.port import DEPLOYMENT, REPLICA_SET, Json

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
NOT_COPIED = frozenset({
    REVISION, HISTORY, DESIRED, MAX_REPLICAS, "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
})  # fmt: skip


def annotations_of(obj: Json) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def number_noted(obj: Json, key: str) -> int | None:
    text = annotations_of(obj).get(key)
    return int(text) if text is not None and str(text).lstrip("-").isdigit() else None


def revision_of(owned: Json) -> str:
    return annotations_of(owned).get(REVISION, "")


def limits(deployment: Json) -> dict[str, str]:
    wanted = wanted_replicas(deployment)
    return {DESIRED: str(wanted), MAX_REPLICAS: str(wanted + room_of(deployment).surge)}


def with_annotations(obj: Json, annotations: dict[str, str]) -> Json:
    """The object itself when they say nothing new."""
    old = annotations_of(obj)
    if all(old.get(k) == v for k, v in annotations.items()):
        return obj
    return merged(obj, metadata={**obj["metadata"], "annotations": {**old, **annotations}})


def with_limits(owned: Json, deployment: Json) -> Json:
    return with_annotations(owned, limits(deployment))


def with_revision(deployment: Json, revision: str) -> Json:
    return with_annotations(deployment, {REVISION: revision})


def copied(deployment: Json) -> dict[str, str]:
    """The Deployment's own annotations, which its newest ReplicaSet carries too."""
    return {k: v for k, v in annotations_of(deployment).items() if k not in NOT_COPIED}


def next_revision(old: Sequence[Json]) -> int:
    return 1 + max((number_noted(s, REVISION) or 0 for s in old), default=0)


def revised(deployment: Json, new: Json, owned: Sequence[Json]) -> Json | None:
    """The ReplicaSet of the current template with what has to be noted anew, None when all is. A template that comes
    back gets the next revision, and its former ones are kept as history."""
    noted = copied(deployment)
    before, after = number_noted(new, REVISION), next_revision([s for s in owned if s is not new])
    if (before or 0) < after:
        noted[REVISION] = str(after)
        if before is not None:
            history = annotations_of(new).get(HISTORY)
            noted[HISTORY] = f"{history},{before}" if history else str(before)
    made = with_annotations(new, noted)
    ready_s = int(deployment["spec"].get("minReadySeconds") or 0)
    if int(new["spec"].get("minReadySeconds") or 0) != ready_s:
        made = merged(made, spec={**made["spec"], "minReadySeconds": ready_s})
    return None if made is new else made


def is_saturated(deployment: Json, new: Json) -> bool:
    wanted = wanted_replicas(deployment)
    available = int((new.get("status") or {}).get("availableReplicas") or 0)
    return wanted_replicas(new) == wanted == number_noted(new, DESIRED) == available


def new_set(deployment: Json, owned: Sequence[Json]) -> Json:
    """The ReplicaSet of the current template, as it is created."""
    template, hash = deployment["spec"]["template"], template_hash(deployment)
    meta = template.get("metadata") or {}
    labels = {**(meta.get("labels") or {}), HASH_LABEL: hash}
    selector, wanted = deployment["spec"]["selector"], wanted_replicas(deployment)
    name = f"{name_of(deployment)}-{hash}"
    size = wanted
    if is_rolling(deployment):
        others = [SetState.of(s) for s in owned]
        size = new_set_size(wanted, SetState(name, 0, 0, 0), others, room_of(deployment))
    return {
        "apiVersion": REPLICA_SET.api_version,
        "kind": REPLICA_SET.kind,
        "metadata": {
            "name": name,
            "namespace": namespace_of(deployment),
            "labels": labels,
            "annotations": {**copied(deployment), **limits(deployment), REVISION: str(next_revision(owned))},
            "ownerReferences": [controller_reference(DEPLOYMENT, deployment)],
        },
        "spec": {
            "replicas": size,
            "minReadySeconds": int(deployment["spec"].get("minReadySeconds") or 0),
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: hash}},
            "template": {**template, "metadata": {**meta, "labels": labels}},
        },
    }
