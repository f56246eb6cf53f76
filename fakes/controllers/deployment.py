"""Rolls Deployments out: a ReplicaSet per pod template, sized step by step within maxSurge and maxUnavailable."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from fakes.clock import WallClock
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.events import EventRecorder
from fakes.controllers.informer import Informer, Key, key_of
from fakes.controllers.objects import (
    condition_of,
    controller_of,
    controller_uid,
    generation_of,
    is_terminal,
    is_terminating,
    merged,
    name_of,
    namespace_of,
    same_status,
    sorted_by_name,
    uid_of,
)
from fakes.controllers.progress import (
    PROGRESSING,
    TIMED_OUT_REASON,
    available_condition,
    condition,
    deadline_s,
    failure_condition,
    overdue_s,
    paused_condition,
    with_deployment_condition,
    with_progress,
    without,
)
from fakes.controllers.revisions import (
    DESIRED,
    MAX_REPLICAS,
    REVISION,
    is_saturated,
    new_set,
    number_noted,
    revised,
    revision_of,
    with_limits,
    with_revision,
)
from fakes.controllers.rollout import (
    HASH_LABEL,
    SetState,
    is_complete,
    is_rolling,
    new_set_size,
    old_set_sizes,
    proportional_sizes,
    room_of,
    status_counts,
    template_hash,
    wanted_replicas,
)
from fakes.timing import Timing
from harness.kube.port import DEPLOYMENT, POD, REPLICA_SET, AlreadyExists, EventType, Json, Kube, NotFound

REVISION_HISTORY = 10
RETRY_S = 0.1


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
        self._owned_sets = self._sets.index(controller_uid)
        self._owned_pods = self._pods.index(controller_uid)
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
        owned = sorted_by_name(self._owned_sets.get(uid_of(deployment)))
        if is_terminating(deployment):
            await self._write_status(deployment, self._current(deployment, owned), owned, estimate=False)
            return
        if (said := paused_condition(deployment, self._wall.stamp())) is not None:
            conditions = with_deployment_condition(_conditions(deployment), said)
            await self._update_status(deployment, {**(deployment.get("status") or {}), "conditions": conditions})
            if deployment["spec"].get("paused"):
                return  # the write comes back to us
            # Resumed, Kubernetes goes on with what it had read before that write. What it then has to say of a new
            # ReplicaSet meets a conflict and is never said.
        new = self._current(deployment, owned)
        if new is not None and (noted := revised(deployment, new, owned)) is not None:
            await self._kube.update(REPLICA_SET, noted)
            return
        if new is not None:
            await self._note_revision(deployment, revision_of(new))
        if deployment["spec"].get("paused") or self._was_scaled(deployment, owned):
            await self._scale_all(deployment, new, owned)
            await self._write_status(deployment, new, owned, estimate=False)
        elif is_rolling(deployment):
            await self._roll(deployment, new, owned)
        else:
            await self._recreate(deployment, new, owned)

    def _current(self, deployment: Json, owned: Sequence[Json]) -> Json | None:
        wanted = template_hash(deployment)
        return next((s for s in owned if (s["metadata"].get("labels") or {}).get(HASH_LABEL) == wanted), None)

    def _was_scaled(self, deployment: Json, owned: Sequence[Json]) -> bool:
        wanted = wanted_replicas(deployment)
        noted = [number_noted(s, DESIRED) for s in owned if wanted_replicas(s) > 0]
        return any(n is not None and n != wanted for n in noted)

    async def _roll(self, deployment: Json, new: Json | None, owned: list[Json]) -> None:
        if new is None:
            await self._create_set(deployment, owned)
            return  # its status, and the step that counts on it, follow when the cache shows it
        old = [s for s in owned if s is not new]
        wanted, room = wanted_replicas(deployment), room_of(deployment)
        state, others = SetState.of(new), [SetState.of(s) for s in old]
        size = new_set_size(wanted, state, others, room)
        if size != state.wanted:
            new = await self._resize(deployment, new, size)
        elif others:
            sizes = old_set_sizes(wanted, state, others, room)
            old = [await self._resize(deployment, s, sizes[name_of(s)]) for s in old]
        await self._finish_rollout(deployment, new, old)

    async def _recreate(self, deployment: Json, new: Json | None, owned: list[Json]) -> None:
        """Nothing new is made before the last pod of the former template has ended."""
        old = [s for s in owned if s is not new]
        running = any(wanted_replicas(s) for s in old)
        old = [await self._resize(deployment, s, 0) for s in old]
        running = running or any((s.get("status") or {}).get("replicas") for s in old)
        if running or any(not is_terminal(p) for s in old for p in self._owned_pods.get(uid_of(s))):
            await self._write_status(deployment, new, owned if new is None else [new, *old])
        elif new is None:
            await self._create_set(deployment, owned)
        else:
            new = await self._resize(deployment, new, wanted_replicas(deployment))
            await self._finish_rollout(deployment, new, old)

    async def _finish_rollout(self, deployment: Json, new: Json, old: Sequence[Json]) -> None:
        if is_complete(deployment, deployment.get("status") or {}):
            await self._forget_history(deployment, old)
        await self._write_status(deployment, new, [new, *old])

    async def _scale_all(self, deployment: Json, new: Json | None, owned: list[Json]) -> None:
        """Scaled, or paused: sizes follow the Deployment, templates do not move."""
        active = [s for s in owned if wanted_replicas(s) > 0]
        wanted = wanted_replicas(deployment)
        if len(active) <= 1:
            newest = max(owned, key=lambda s: SetState.of(s).age_rank, default=None)
            only = active[0] if active else new or newest
            if only is not None and wanted_replicas(only) != wanted:
                await self._resize(deployment, only, wanted)
            return
        if new is not None and is_saturated(deployment, new):
            for each in active:
                if each is not new:
                    await self._resize(deployment, each, 0)
            return
        if not is_rolling(deployment):
            return
        limit = wanted + room_of(deployment).surge if wanted > 0 else 0
        status = deployment.get("status") or {}
        former = max((number_noted(s, MAX_REPLICAS) or 0 for s in active), default=0) or int(
            status.get("replicas") or 0
        )
        sizes = proportional_sizes([SetState.of(s) for s in active], limit, former)
        for each in active:
            await self._resize(deployment, each, sizes[name_of(each)], noting=True)

    async def _resize(self, deployment: Json, owned: Json, size: int, *, noting: bool = False) -> Json:
        """``noting``: also when only what is noted on it has changed."""
        before = wanted_replicas(owned)
        noted = with_limits(owned, deployment)
        if size == before and not (noting and noted["metadata"] != owned["metadata"]):
            return owned
        updated = await self._kube.update(REPLICA_SET, merged(noted, spec={**owned["spec"], "replicas": size}))
        if size != before:
            direction = "up" if size > before else "down"
            message = f"Scaled {direction} replica set {name_of(owned)} from {before} to {size}"
            await self._events.normal(DEPLOYMENT, deployment, "ScalingReplicaSet", message)
        return updated

    async def _create_set(self, deployment: Json, owned: Sequence[Json]) -> None:
        made = new_set(deployment, owned)
        name, size = name_of(made), wanted_replicas(made)
        try:
            made = await self._kube.create(REPLICA_SET, made, namespace_of(deployment))
        except AlreadyExists:
            return  # the cache was behind, and will have caught up by the next sync
        if size:
            message = f"Scaled up replica set {name} from 0 to {size}"
            await self._events.normal(DEPLOYMENT, deployment, "ScalingReplicaSet", message)
        status = {**(deployment.get("status") or {})}
        if deadline_s(deployment) is not None:
            said = ("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
            created = condition(PROGRESSING, *said, self._wall.stamp())
            status["conditions"] = with_deployment_condition(_conditions(deployment), created)
        await self._update_status(with_revision(deployment, revision_of(made)), status)

    async def _note_revision(self, deployment: Json, revision: str) -> None:
        if revision and with_revision(deployment, revision) is not deployment:
            patch = {"metadata": {"annotations": {REVISION: revision}}}
            await self._kube.patch(DEPLOYMENT, name_of(deployment), patch, namespace_of(deployment))

    async def _forget_history(self, deployment: Json, old: Sequence[Json]) -> None:
        kept = deployment["spec"].get("revisionHistoryLimit")
        alive = sorted((s for s in old if not is_terminating(s)), key=lambda s: number_noted(s, REVISION) or 0)
        for owned in alive[: max(0, len(alive) - (REVISION_HISTORY if kept is None else int(kept)))]:
            status = owned.get("status") or {}
            behind = generation_of(owned) > int(status.get("observedGeneration") or 0)
            if wanted_replicas(owned) or status.get("replicas") or behind:
                continue
            try:
                await self._kube.delete(REPLICA_SET, name_of(owned), namespace_of(owned))
            except NotFound:
                continue

    async def _write_status(
        self, deployment: Json, new: Json | None, owned: Sequence[Json], *, estimate: bool = True
    ) -> None:
        """Without ``estimate`` nothing is said about the progress of a rollout: there is none."""
        counts, stamp = status_counts(deployment, new, owned), self._wall.stamp()
        conditions = available_condition(deployment, counts, _conditions(deployment), stamp)
        if estimate:
            now, scale = self._wall.now(), self._timing.time_scale
            conditions = with_progress(deployment, new, counts, conditions, now, stamp, scale)
            failed = failure_condition(new, owned)
            conditions = (
                without(conditions, "ReplicaFailure")
                if failed is None
                else with_deployment_condition(conditions, failed)
            )
        status = {**counts, "conditions": conditions}
        if not same_status(status, deployment.get("status") or {}):
            await self._update_status(deployment, status)
        elif estimate:
            self._look_again(deployment, counts)

    async def _update_status(self, deployment: Json, status: Json) -> None:
        await self._kube.update(DEPLOYMENT, merged(deployment, status=status), subresource="status")

    def _look_again(self, deployment: Json, counts: Json) -> None:
        """When a rollout that stands still would have used up its time."""
        old, allowed_s = condition_of(deployment, PROGRESSING), deadline_s(deployment)
        if old is None or allowed_s is None or is_complete(deployment, counts) or old["reason"] == TIMED_OUT_REASON:
            return
        left_s = overdue_s(old, allowed_s, self._wall.now(), self._timing.time_scale)
        # Stamps have whole seconds. Kubernetes adds one to what is left, unless less than one is.
        second_s = self._timing.clock_s(1.0)
        self._loop.queue.add_after(key_of(deployment), left_s + second_s if left_s >= second_s else RETRY_S)


def _conditions(deployment: Json) -> list[Json]:
    return (deployment.get("status") or {}).get("conditions") or []
