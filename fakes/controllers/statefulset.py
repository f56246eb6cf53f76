"""Keeps the numbered pods of each StatefulSet: what groups of pods with fixed names stand on.

Rules as of kubernetes v1.37 pkg/controller/statefulset: pods by number from ``ordinals.start``, in order or at once; a
pod that has ended is made again under its name; an update goes from the highest number down to ``partition``, as many
at a time as ``maxUnavailable`` says. No volumes, and revisions live in this process, not in ControllerRevisions.
"""

from __future__ import annotations

from collections.abc import Callable

from fakes.clock import WallClock
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.events import EventRecorder
from fakes.controllers.informer import Informer, Key, key_of
from fakes.controllers.names import stable_hash
from fakes.controllers.objects import (
    controller_of,
    controller_reference,
    controller_uid,
    generation_of,
    is_ready,
    is_terminal,
    is_terminating,
    merged,
    name_of,
    namespace_of,
    uid_of,
)
from fakes.controllers.quantity import scaled_value
from fakes.controllers.replicas import pod_from_template
from harness.kube.port import POD, STATEFUL_SET, AlreadyExists, EventType, Json, Kube, NotFound

REVISION_LABEL = "controller-revision-hash"
Admit = Callable[[Json], Json]
"""What a pod is changed into before it is made, as a mutating webhook would."""


def ordinal(pod: Json) -> int:
    """The number at the end of the pod's name."""
    return int(name_of(pod).rpartition("-")[2])


class StatefulSetController:
    def __init__(self, kube: Kube, wall: WallClock, admit: Admit = lambda pod: pod) -> None:
        self._kube = kube
        self._admit = admit
        self._events = EventRecorder(kube, wall, "statefulset-controller")
        self._sets = Informer(kube, STATEFUL_SET)
        self._pods = Informer(kube, POD)
        self._owned = self._pods.index(controller_uid)
        self._templates: dict[tuple[str, str], Json] = {}
        self._loop: Reconciler[Key] = Reconciler(self._sync)
        self._sets.on_change(self._set_changed)
        self._pods.on_change(self._pod_changed)

    async def run(self) -> None:
        await run_controller((self._sets, self._pods), self._loop.run)

    def _set_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is EventType.DELETED:
            self._templates = {k: t for k, t in self._templates.items() if k[0] != uid_of(new)}
        self._loop.queue.add(key_of(new))

    def _pod_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        owner = controller_of(new)
        if owner is not None and owner["kind"] == STATEFUL_SET.kind:
            self._loop.queue.add((namespace_of(new), owner["name"]))

    async def _sync(self, key: Key) -> None:
        """One kind of step at a time: what it writes brings the next."""
        owner = self._sets.objects.get(key)
        if owner is None or is_terminating(owner):
            return
        pods = {ordinal(p): p for p in self._owned.get(uid_of(owner))}
        update = self._revision(owner)
        if not await self._replace_ended(pods) and not await self._fill(owner, pods, update):
            wanted = _numbers(owner)
            if not await self._shrink(owner, pods, wanted):
                await self._roll(owner, {n: pods[n] for n in wanted if n in pods}, update)
        await self._write_status(owner, list(pods.values()), update)

    def _revision(self, owner: Json) -> str:
        revision = f"{name_of(owner)}-{stable_hash(owner['spec']['template'])}"
        self._templates[uid_of(owner), revision] = owner["spec"]["template"]
        return revision

    async def _replace_ended(self, pods: dict[int, Json]) -> bool:
        ended = [p for p in pods.values() if is_terminal(p) and not is_terminating(p)]
        for pod in ended:
            await self._delete(pod)
        return bool(ended)

    async def _fill(self, owner: Json, pods: dict[int, Json], update: str) -> bool:
        """Makes the pods that are missing; whether there were any."""
        missing = False
        for number in _numbers(owner):
            pod = pods.get(number)
            if pod is None:
                await self._create(owner, number, self._revision_of_new(owner, number, update))
                missing = True
            if _in_order(owner) and (pod is None or not is_ready(pod) or is_terminating(pod)):
                return True
        return missing

    def _revision_of_new(self, owner: Json, number: int, update: str) -> str:
        current = (owner.get("status") or {}).get("currentRevision") or update
        return current if number < _partition(owner) and (uid_of(owner), current) in self._templates else update

    async def _shrink(self, owner: Json, pods: dict[int, Json], wanted: range) -> bool:
        surplus = sorted((n for n in pods if n not in wanted), reverse=True)
        for number in surplus[:1] if _in_order(owner) else surplus:
            if not is_terminating(pods[number]):
                await self._delete(pods[number])
        return bool(surplus)

    async def _roll(self, owner: Json, pods: dict[int, Json], update: str) -> None:
        if owner["spec"].get("updateStrategy", {}).get("type") == "OnDelete":
            return
        rolling = owner["spec"].get("updateStrategy", {}).get("rollingUpdate") or {}
        may = max(1, scaled_value(rolling.get("maxUnavailable", 1), len(pods), round_up=False))
        may -= sum(not is_ready(p) or is_terminating(p) for p in pods.values())
        for number in sorted(pods, reverse=True):
            if number < _partition(owner):
                return
            pod = pods[number]
            if _revision_label(pod) == update or is_terminating(pod):
                continue
            if may <= 0 and is_ready(pod):
                return
            may -= is_ready(pod)
            await self._delete(pod)

    async def _create(self, owner: Json, number: int, revision: str) -> None:
        name = f"{name_of(owner)}-{number}"
        template = self._templates[uid_of(owner), revision]
        like = merged(owner, spec={**owner["spec"], "template": template})
        pod = pod_from_template(like, controller_reference(STATEFUL_SET, owner), name)
        pod["metadata"]["labels"] |= {
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(number),
            REVISION_LABEL: revision,
        }
        pod["spec"] = {**pod["spec"], "hostname": name, "subdomain": owner["spec"].get("serviceName", "")}
        try:
            await self._kube.create(POD, self._admit(pod), namespace_of(owner))
        except AlreadyExists:
            return  # the one before it is still there; its end brings us back
        said = f"Create Pod {name} in StatefulSet {name_of(owner)} successful"
        await self._events.normal(STATEFUL_SET, owner, "SuccessfulCreate", said)

    async def _delete(self, pod: Json) -> None:
        try:
            await self._kube.delete(POD, name_of(pod), namespace_of(pod), uid=uid_of(pod))
        except NotFound:
            return

    async def _write_status(self, owner: Json, pods: list[Json], update: str) -> None:
        old = owner.get("status") or {}
        current = old.get("currentRevision") or update
        ready = [p for p in pods if is_ready(p) and not is_terminating(p)]
        updated = [p for p in pods if _revision_label(p) == update]
        if len(updated) == len(pods) == owner["spec"].get("replicas", 1) == len(ready) and not _partition(owner):
            current = update
        counts = {
            "replicas": len(pods),
            "readyReplicas": len(ready),
            "availableReplicas": len(ready),
            "currentReplicas": sum(_revision_label(p) == current for p in pods),
            "updatedReplicas": len(updated),
        }
        status: Json = {
            "observedGeneration": generation_of(owner),
            **{name: count for name, count in counts.items() if count or name in ("replicas", "availableReplicas")},
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": 0,
        }
        if status != old:
            await self._kube.update(STATEFUL_SET, merged(owner, status=status), subresource="status")


def _numbers(owner: Json) -> range:
    start = int((owner["spec"].get("ordinals") or {}).get("start") or 0)
    return range(start, start + int(owner["spec"].get("replicas", 1)))


def _in_order(owner: Json) -> bool:
    return bool(owner["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady")


def _partition(owner: Json) -> int:
    rolling = (owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return int(rolling.get("partition") or 0)


def _revision_label(pod: Json) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))
