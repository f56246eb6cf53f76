"""Rolls Deployments out: a ReplicaSet per pod template, sized step by step within maxSurge and maxUnavailable."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from random import Random

from fakes.clock import WallClock, parse_stamp
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.events import EventRecorder
from fakes.controllers.informer import Informer, Key, key_of
from fakes.controllers.objects import (
    condition_of,
    controller_of,
    controller_reference,
    is_controlled_by,
    is_terminating,
    merged,
    name_of,
    namespace_of,
    sorted_by_name,
)
from fakes.controllers.rollout import (
    DESIRED,
    HASH_LABEL,
    MAX_REPLICAS,
    REVISION,
    SetState,
    available_condition,
    has_moved,
    is_complete,
    is_rolling,
    new_set_size,
    old_set_sizes,
    proportional_sizes,
    room_of,
    set_condition,
    status_counts,
    template_hash,
    wanted_replicas,
)
from fakes.timing import Timing
from harness.kube.port import DEPLOYMENT, POD, REPLICA_SET, AlreadyExists, EventType, Json, Kube, NotFound

PROGRESS_DEADLINE_S = 600
REVISION_HISTORY = 10


class DeploymentController:
    """Draws nothing from ``rng``: its ReplicaSets are named by hash, and pods are not its business."""

    def __init__(self, kube: Kube, wall: WallClock, rng: Random, timing: Timing | None = None) -> None:
        self._kube = kube
        self._wall = wall
        self._timing = timing or Timing()
        self._events = EventRecorder(kube, wall, "deployment-controller")
        self._deployments = Informer(kube, DEPLOYMENT)
        self._sets = Informer(kube, REPLICA_SET)
        self._pods = Informer(kube, POD)
        self._loop: Reconciler[Key] = Reconciler(self._sync)
        self._deployments.on_change(lambda type, new, old: self._loop.queue.add(key_of(new)))
        self._sets.on_change(self._set_changed)
        self._pods.on_change(self._pod_changed)

    async def run(self) -> None:
        await run_controller((self._deployments, self._sets, self._pods), self._loop.run)

    def _set_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        owner = controller_of(new)
        if owner is not None and owner["kind"] == DEPLOYMENT.kind:
            self._loop.queue.add((namespace_of(new), owner["name"]))

    def _pod_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        """Only Recreate needs pods: its new ones wait until the last old one is gone."""
        if type is EventType.DELETED and (ref := controller_of(new)) is not None:
            owned = self._sets.objects.get((namespace_of(new), ref["name"]))
            if owned is not None:
                self._set_changed(EventType.MODIFIED, owned, None)

    async def _sync(self, key: Key) -> None:
        deployment = self._deployments.objects.get(key)
        if deployment is None:
            return
        owned = sorted_by_name(s for s in self._sets.values() if is_controlled_by(s, deployment))
        new = self._current(deployment, owned)
        if is_terminating(deployment):
            await self._write_status(deployment, new, owned)
            return
        if deployment["spec"].get("paused") or self._was_scaled(deployment, owned):
            await self._scale_all(deployment, owned)
        else:
            if new is None:
                new = await self._create_set(deployment, owned)
                owned = [*owned, new]
            await self._roll(deployment, new, [s for s in owned if s is not new])
        await self._write_status(deployment, new, owned)

    def _current(self, deployment: Json, owned: Sequence[Json]) -> Json | None:
        wanted = template_hash(deployment)
        return next((s for s in owned if (s["metadata"].get("labels") or {}).get(HASH_LABEL) == wanted), None)

    def _was_scaled(self, deployment: Json, owned: Sequence[Json]) -> bool:
        wanted = wanted_replicas(deployment)
        noted = [_annotation(s, DESIRED) for s in owned if wanted_replicas(s) > 0]
        return any(n is not None and n != wanted for n in noted)

    async def _roll(self, deployment: Json, new: Json, old: list[Json]) -> None:
        wanted, room, rolling = wanted_replicas(deployment), room_of(deployment), is_rolling(deployment)
        if not rolling and old:
            for owned in old:
                await self._resize(deployment, owned, 0)
            if any(self._pods_of(owned) for owned in old):
                return
        state, others = SetState.of(new), [SetState.of(s) for s in old]
        size = new_set_size(wanted, state, others, room, rolling)
        if size != state.wanted:
            await self._resize(deployment, new, size)
            return  # the next step counts on what this one made
        if rolling and others:
            sizes = old_set_sizes(wanted, state, others, room)
            for owned in old:
                await self._resize(deployment, owned, sizes[name_of(owned)])
        await self._note_limits(deployment, new)
        if is_complete(deployment, status_counts(deployment, new, [new, *old])):
            await self._forget_history(deployment, old)

    def _pods_of(self, owned: Json) -> list[Json]:
        return [p for p in self._pods.objects.values() if is_controlled_by(p, owned)]

    async def _scale_all(self, deployment: Json, owned: Sequence[Json]) -> None:
        """Scaled, or paused: sizes follow the Deployment, templates do not move."""
        active = [s for s in owned if wanted_replicas(s) > 0]
        current = self._current(deployment, owned)
        if len(active) <= 1:
            only = active[0] if active else current
            if only is not None:
                await self._resize(deployment, only, wanted_replicas(deployment))
            return
        room, wanted = room_of(deployment), wanted_replicas(deployment)
        limit = wanted + room.surge if wanted > 0 else 0
        former = max((_annotation(s, MAX_REPLICAS) or 0 for s in active), default=0)
        sizes = proportional_sizes([SetState.of(s) for s in active], limit, former)
        for each in active:
            await self._resize(deployment, each, sizes[name_of(each)])

    async def _resize(self, deployment: Json, owned: Json, size: int) -> None:
        before = wanted_replicas(owned)
        noted = _with_limits(owned, deployment)
        if size == before and noted["metadata"] == owned["metadata"]:
            return
        await self._kube.update(REPLICA_SET, merged(noted, spec={**owned["spec"], "replicas": size}))
        if size != before:
            direction = "up" if size > before else "down"
            message = f"Scaled {direction} replica set {name_of(owned)} from {before} to {size}"
            await self._events.normal(DEPLOYMENT, deployment, "ScalingReplicaSet", message)

    async def _note_limits(self, deployment: Json, owned: Json) -> None:
        noted = _with_limits(owned, deployment)
        if noted["metadata"] != owned["metadata"]:
            await self._kube.update(REPLICA_SET, noted)

    async def _create_set(self, deployment: Json, owned: Sequence[Json]) -> Json:
        template, hash = deployment["spec"]["template"], template_hash(deployment)
        meta = template.get("metadata") or {}
        labels = {**(meta.get("labels") or {}), HASH_LABEL: hash}
        selector = deployment["spec"]["selector"]
        room, wanted = room_of(deployment), wanted_replicas(deployment)
        empty = SetState(f"{name_of(deployment)}-{hash}", 0, 0, 0)
        size = new_set_size(wanted, empty, [SetState.of(s) for s in owned], room, is_rolling(deployment) or bool(owned))
        revision = 1 + max((_annotation(s, REVISION) or 0 for s in owned), default=0)
        made = {
            "apiVersion": REPLICA_SET.api_version,
            "kind": REPLICA_SET.kind,
            "metadata": {
                "name": empty.name,
                "namespace": namespace_of(deployment),
                "labels": labels,
                "annotations": {**_limits(deployment), REVISION: str(revision)},
                "ownerReferences": [controller_reference(DEPLOYMENT, deployment)],
            },
            "spec": {
                "replicas": size,
                "minReadySeconds": int(deployment["spec"].get("minReadySeconds") or 0),
                "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: hash}},
                "template": {**template, "metadata": {**meta, "labels": labels}},
            },
        }
        try:
            created = await self._kube.create(REPLICA_SET, made, namespace_of(deployment))
        except AlreadyExists:
            return await self._kube.get(REPLICA_SET, empty.name, namespace_of(deployment))  # the cache was behind
        if size:
            message = f"Scaled up replica set {empty.name} from 0 to {size}"
            await self._events.normal(DEPLOYMENT, deployment, "ScalingReplicaSet", message)
        await self._note_revision(deployment, revision)
        return created

    async def _note_revision(self, deployment: Json, revision: int) -> None:
        patch = {"metadata": {"annotations": {REVISION: str(revision)}}}
        await self._kube.patch(DEPLOYMENT, name_of(deployment), patch, namespace_of(deployment))

    async def _forget_history(self, deployment: Json, old: Sequence[Json]) -> None:
        kept = deployment["spec"].get("revisionHistoryLimit")
        idle = [s for s in old if not wanted_replicas(s) and not (s.get("status") or {}).get("replicas")]
        idle.sort(key=lambda s: (_annotation(s, REVISION) or 0, name_of(s)))
        for owned in idle[: max(0, len(idle) - (REVISION_HISTORY if kept is None else int(kept)))]:
            try:
                await self._kube.delete(REPLICA_SET, name_of(owned), namespace_of(owned))
            except NotFound:
                continue

    async def _write_status(self, deployment: Json, new: Json | None, owned: Sequence[Json]) -> None:
        old = deployment.get("status") or {}
        counts = status_counts(deployment, new, owned)
        conditions = available_condition(deployment, counts, old.get("conditions") or [], self._wall.stamp())
        status = {**counts, "conditions": self._with_progress(deployment, new, counts, conditions)}
        if status != old:
            fresh = self._deployments.objects.get(key_of(deployment), deployment)
            await self._kube.update(DEPLOYMENT, merged(fresh, status=status), subresource="status")

    def _with_progress(self, deployment: Json, new: Json | None, counts: Json, conditions: list[Json]) -> list[Json]:
        old = condition_of(deployment, "Progressing")
        stamp = self._wall.stamp()
        subject = f'ReplicaSet "{name_of(new)}"' if new is not None else f'Deployment "{name_of(deployment)}"'
        settled = old is not None and old.get("reason") == "NewReplicaSetAvailable"
        if is_complete(deployment, counts):
            message = f"{subject} has successfully progressed."
            return set_condition(conditions, "Progressing", "True", "NewReplicaSetAvailable", message, stamp)
        if settled and counts["updatedReplicas"] == counts["replicas"]:
            return conditions  # a finished rollout that lost or gained pods is no new rollout
        if old is None and new is not None:
            message = f'Created new replica set "{name_of(new)}"'
            return set_condition(conditions, "Progressing", "True", "NewReplicaSetCreated", message, stamp)
        if settled or has_moved(deployment.get("status") or {}, counts):
            message = f"{subject} is progressing."
            return set_condition(conditions, "Progressing", "True", "ReplicaSetUpdated", message, stamp, touch=True)
        if old is not None and self._overdue(deployment, old):
            message = f"{subject} has timed out progressing."
            return set_condition(conditions, "Progressing", "False", "ProgressDeadlineExceeded", message, stamp)
        return conditions

    def _overdue(self, deployment: Json, progressing: Json) -> bool:
        deadline = deployment["spec"].get("progressDeadlineSeconds")
        allowed_s = self._timing.clock_s(float(PROGRESS_DEADLINE_S if deadline is None else deadline))
        since = parse_stamp(progressing.get("lastUpdateTime") or progressing["lastTransitionTime"])
        left_s = (since + timedelta(seconds=allowed_s) - self._wall.now()).total_seconds()
        if left_s > 0:
            self._loop.queue.add_after(key_of(deployment), left_s)
        return left_s <= 0


def _annotation(obj: Json, key: str) -> int | None:
    text = (obj["metadata"].get("annotations") or {}).get(key)
    return int(text) if text is not None and str(text).lstrip("-").isdigit() else None


def _limits(deployment: Json) -> dict[str, str]:
    wanted = wanted_replicas(deployment)
    return {DESIRED: str(wanted), MAX_REPLICAS: str(wanted + room_of(deployment).surge)}


def _with_limits(owned: Json, deployment: Json) -> Json:
    annotations = {**(owned["metadata"].get("annotations") or {}), **_limits(deployment)}
    return merged(owned, metadata={**owned["metadata"], "annotations": annotations})
