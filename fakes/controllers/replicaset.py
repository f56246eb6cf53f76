"""Keeps as many active pods of each ReplicaSet as it asks for."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from fakes.clock import WallClock
from fakes.config import PlantedBug
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.events import EventRecorder
from fakes.controllers.informer import Informer, Key, key_of
from fakes.controllers.names import suffix
from fakes.controllers.objects import (
    controller_of,
    controller_reference,
    controller_uid,
    generation_of,
    is_active,
    is_controlled_by,
    is_namespace_terminating,
    is_ready,
    is_terminal,
    is_terminating,
    merged,
    name_of,
    namespace_of,
    same_status,
    uid_of,
    with_condition,
)
from fakes.controllers.ownership import without_owners
from fakes.controllers.replicas import available_in_s, pod_from_template, pods_to_delete
from fakes.controllers.tally import Tally
from fakes.kube.selectors import match_label_selector
from fakes.timing import Timing
from harness.kube.port import POD, REPLICA_SET, AlreadyExists, ApiError, EventType, Json, Kube, NotFound

EXPECTATION_S = 300.0
"""After so long (loop time) a write that was never seen in the cache is taken for lost."""


@dataclass(slots=True)
class _Expected:
    """Writes of ours that the pod cache does not show yet. Without them a lagging cache makes pods twice."""

    since_s: float
    created: set[Key] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)  # uids


class _Face(NamedTuple):
    """What of a pod the status of its ReplicaSet counts."""

    active: bool
    ready: bool
    leaving: bool
    labels: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, pod: Json) -> _Face:
        leaving = is_terminating(pod) and not is_terminal(pod)
        return cls(is_active(pod), is_ready(pod), leaving, tuple(sorted(_labels(pod).items())))


class ReplicaSetController:
    """A pod's change costs the same whatever the number of replicas: the pods are counted as they change."""

    def __init__(
        self,
        kube: Kube,
        wall: WallClock,
        rng: Random,
        timing: Timing | None = None,
        bugs: Collection[PlantedBug] = (),
    ) -> None:
        self._bugs = frozenset(bugs)
        # For planted bugs, by uid of the ReplicaSet: pods that were made, and the size of the start.
        self._made: Counter[str] = Counter()
        self._first: dict[str, int] = {}
        self._kube = kube
        self._wall = wall
        self._rng = rng
        self._timing = timing or Timing()
        self._events = EventRecorder(kube, wall, "replicaset-controller")
        self._sets = Informer(kube, REPLICA_SET)
        self._pods = Informer(kube, POD)
        self._loop: Reconciler[Key] = Reconciler(self._sync)
        self._expected: dict[str, _Expected] = {}  # by uid of the ReplicaSet
        self._owned = self._pods.index(controller_uid)
        self._orphans = self._pods.index(lambda pod: namespace_of(pod) if controller_of(pod) is None else None)
        self._tallies: defaultdict[str, Tally[_Face]] = defaultdict(Tally)  # by uid of the ReplicaSet
        self._strays: dict[Key, None] = {}  # pods whose labels were changed while they were owned
        self._sets.on_change(self._set_changed)
        self._pods.on_change(self._pod_changed)

    async def run(self) -> None:
        await run_controller((self._sets, self._pods), self._loop.run)

    def _set_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is EventType.DELETED:
            self._expected.pop(uid_of(new), None)
        self._loop.queue.add(key_of(new))

    def _count(self, type: EventType, new: Json, old: Json | None) -> None:
        key, owner = key_of(new), None if type is EventType.DELETED else controller_uid(new)
        before = None if old is None else controller_uid(old)
        if before is not None and before != owner:
            self._tallies[before].drop(key)
            if not self._tallies[before]:
                del self._tallies[before]
        if owner is not None:
            self._tallies[owner].put(key, _Face.of(new))

    def _pod_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        self._count(type, new, old)
        if old is not None and controller_uid(new) is not None and _labels(old) != _labels(new):
            self._strays[key_of(new)] = None
        for pod in (new, old):
            owner = controller_of(pod) if pod is not None else None
            if owner is not None and owner["kind"] == REPLICA_SET.kind:
                self._observe(owner["uid"], type, new)
                self._loop.queue.add((namespace_of(new), owner["name"]))
        if controller_of(new) is None and not is_terminating(new):
            for owner_set in self._sets.values():
                if _selects(owner_set, new):
                    self._loop.queue.add(key_of(owner_set))

    def _observe(self, owner_uid: str, type: EventType, pod: Json) -> None:
        expected = self._expected.get(owner_uid)
        if expected is None:
            return
        expected.created.discard(key_of(pod))
        if type is EventType.DELETED or is_terminating(pod):
            expected.deleted.discard(uid_of(pod))

    async def _sync(self, key: Key) -> None:
        owner = self._sets.objects.get(key)
        if owner is None:
            return
        await self._release()
        await self._adopt(owner)
        # As they are now: a pod that is made below counts only once the cache shows it.
        counts = Counter(tally.counts) if (tally := self._tallies.get(uid_of(owner))) else Counter()
        problem: ApiError | ConnectionError | None = None
        if self._settled(owner) and not is_terminating(owner):
            try:
                await self._manage(owner, sum(n for face, n in counts.items() if face.active))
            except (ApiError, ConnectionError) as error:
                problem = error
        await self._write_status(owner, counts, problem)
        if problem is not None:
            raise problem

    def _settled(self, owner: Json) -> bool:
        """Whether the cache shows all our own writes."""
        expected = self._expected.get(uid_of(owner))
        if expected is None or not (expected.created or expected.deleted):
            return True
        left_s = expected.since_s + EXPECTATION_S - asyncio.get_running_loop().time()
        if left_s <= 0:
            del self._expected[uid_of(owner)]
            return True
        self._loop.queue.add_after(key_of(owner), left_s)
        return False

    async def _release(self) -> None:
        """Lets go of pods that do not match the selector of their ReplicaSet any more."""
        while self._strays:
            key = next(iter(self._strays))
            pod = self._pods.objects.get(key)
            ref = None if pod is None else controller_of(pod)
            owner = None if ref is None else self._sets.objects.get((key[0], str(ref["name"])))
            if pod is not None and owner is not None and is_controlled_by(pod, owner) and not _selects(owner, pod):
                metadata = {
                    "ownerReferences": without_owners(pod, [uid_of(owner)]) or None,
                    "resourceVersion": pod["metadata"]["resourceVersion"],
                }
                with contextlib.suppress(NotFound):
                    await self._kube.patch(POD, name_of(pod), {"metadata": metadata}, namespace_of(pod))
            self._strays.pop(key, None)

    async def _adopt(self, owner: Json) -> None:
        """Takes over pods that match the selector and belong to nobody."""
        if is_terminating(owner):
            return
        for pod in list(self._orphans.get(namespace_of(owner))):
            if is_active(pod) and _selects(owner, pod):
                references = [*(pod["metadata"].get("ownerReferences") or []), controller_reference(REPLICA_SET, owner)]
                metadata = {"ownerReferences": references, "resourceVersion": pod["metadata"]["resourceVersion"]}
                await self._kube.patch(POD, name_of(pod), {"metadata": metadata}, namespace_of(pod))

    async def _manage(self, owner: Json, active: int) -> None:
        missing = self._misled(owner, int(owner["spec"].get("replicas", 1)), active)
        if missing == 0:
            return
        expected = _Expected(asyncio.get_running_loop().time())
        self._expected[uid_of(owner)] = expected
        if missing > 0:
            for _ in range(missing):
                await self._create_pod(owner, expected)
            return
        pods = [p for p in self._owned.get(uid_of(owner)) if is_active(p)]
        for pod in pods_to_delete(pods, -missing, self._related(owner)):
            await self._delete_pod(owner, pod, expected)

    def _misled(self, owner: Json, wanted: int, active: int) -> int:
        """How many pods are missing, less those that planted bugs keep from being made."""
        uid, missing = uid_of(owner), wanted - active
        if missing <= 0:
            return missing
        if PlantedBug.REPLICAS_NEVER_CREATED in self._bugs:  # beyond the size of the start, as under a quota
            missing = min(missing, max(0, self._first.setdefault(uid, wanted) - active))
        if PlantedBug.REPLICAS_NEVER_REPLACED in self._bugs:
            missing = max(0, wanted - self._made[uid])
        self._made[uid] += missing
        return missing

    async def _create_pod(self, owner: Json, expected: _Expected) -> None:
        namespace = namespace_of(owner)
        name = f"{name_of(owner)}-{suffix(self._rng)}"
        pod = pod_from_template(owner, controller_reference(REPLICA_SET, owner), name)
        expected.created.add((namespace, name))
        try:
            await self._kube.create(POD, pod, namespace)
        except (ApiError, ConnectionError) as error:
            if isinstance(error, ApiError) and is_namespace_terminating(error):
                return  # nothing can be made there any more; as it stays expected, nobody tries again soon
            expected.created.discard((namespace, name))
            if not isinstance(error, AlreadyExists):
                await self._events.warning(REPLICA_SET, owner, "FailedCreate", f"Error creating: {error}")
            raise
        await self._events.normal(REPLICA_SET, owner, "SuccessfulCreate", f"Created pod: {name}")

    async def _delete_pod(self, owner: Json, pod: Json, expected: _Expected) -> None:
        expected.deleted.add(uid_of(pod))
        try:
            grace_s = 0 if PlantedBug.SCALE_IN_KILLS in self._bugs else None
            await self._kube.delete(POD, name_of(pod), namespace_of(pod), grace_s=grace_s, uid=uid_of(pod))
        except NotFound:
            expected.deleted.discard(uid_of(pod))
        except (ApiError, ConnectionError):
            expected.deleted.discard(uid_of(pod))
            raise
        else:
            await self._events.normal(REPLICA_SET, owner, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")

    def _related(self, owner: Json) -> list[Json]:
        """Active pods of all ReplicaSets that share this one's owner (a rollout has several)."""
        top = controller_of(owner)
        family = [s for s in self._sets.objects.values() if top and (controller_of(s) or {}).get("uid") == top["uid"]]
        uids = dict.fromkeys((*(uid_of(s) for s in family), uid_of(owner)))
        return [p for uid in uids for p in self._owned.get(uid) if is_active(p)]

    async def _write_status(self, owner: Json, counts: Counter[_Face], problem: Exception | None) -> None:
        available, later_s = self._available(owner, counts)
        template_labels = set(((owner["spec"]["template"].get("metadata") or {}).get("labels") or {}).items())
        old = owner.get("status") or {}
        status: Json = {
            **{k: v for k, v in old.items() if k == "conditions"},
            "replicas": sum(n for face, n in counts.items() if face.active),
            "fullyLabeledReplicas": sum(n for f, n in counts.items() if f.active and template_labels <= set(f.labels)),
            "readyReplicas": sum(n for face, n in counts.items() if face.active and face.ready),
            "availableReplicas": available,
            "terminatingReplicas": sum(n for face, n in counts.items() if face.leaving),
            "observedGeneration": generation_of(owner),
        }
        self._note_failure(status, problem)
        if not same_status(status, old):
            await self._kube.update(REPLICA_SET, merged(owner, status=status), subresource="status")
        if later_s is not None:
            self._loop.queue.add_after(key_of(owner), later_s)

    def _available(self, owner: Json, counts: Counter[_Face]) -> tuple[int, float | None]:
        """How many replicas are, and in how many seconds the next one will be. Only a ReplicaSet that asks for a time
        of readiness needs a look at every pod."""
        min_ready_s = self._timing.clock_s(float(owner["spec"].get("minReadySeconds") or 0))
        if min_ready_s <= 0:
            return sum(n for face, n in counts.items() if face.active and face.ready), None
        active = [p for p in self._owned.get(uid_of(owner)) if is_active(p)]
        waits = [w for p in active if (w := available_in_s(p, min_ready_s, self._wall.now())) is not None]
        return sum(w == 0.0 for w in waits), min((w for w in waits if w), default=None)

    def _note_failure(self, status: Json, problem: Exception | None) -> None:
        if problem is None:
            if kept := [c for c in status.pop("conditions", []) if c["type"] != "ReplicaFailure"]:
                status["conditions"] = kept
            return
        condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": str(problem)}
        status["conditions"] = with_condition(status.get("conditions"), condition, self._wall.stamp())


def _selects(owner: Json, pod: Json) -> bool:
    return namespace_of(owner) == namespace_of(pod) and match_label_selector(
        owner["spec"].get("selector"), _labels(pod)
    )


def _labels(pod: Json) -> dict[str, str]:
    return pod["metadata"].get("labels") or {}
