"""Binds pods to nodes: highest priority first, then the oldest; members of a gang together or not at all.

A pod that fits nowhere may take the room of pods of lower priority: they are evicted, it is nominated for their node,
and waits until they are gone. Otherwise it waits until something that could help it changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fakes.clock import WallClock
from fakes.config import PlantedBug
from fakes.controllers.cluster import Cluster
from fakes.controllers.controller import retry_delay_s, run_controller
from fakes.controllers.events import EventRecorder
from fakes.controllers.gang import (
    RESOLVABLE,
    GangPlan,
    GangRefused,
    group_name,
    group_status,
    is_complete,
    plan_gang,
    refused_group,
)
from fakes.controllers.gang_preemption import NO_VICTIMS, plan_gang_preemption
from fakes.controllers.informer import Informer, Key, key_of
from fakes.controllers.objects import (
    is_active,
    is_terminating,
    merged,
    name_of,
    namespace_of,
    node_of,
    uid_of,
    with_condition,
)
from fakes.controllers.placement import Refusal, explain, holds_room, node_state, placement_state
from fakes.controllers.preemption import plan_preemption
from fakes.controllers.taint_eviction import disruption_patch
from fakes.controllers.victims import REASON, priority_of
from fakes.timing import Timing
from harness.kube.port import (
    NODE,
    PDB,
    POD,
    POD_GROUP,
    ApiError,
    Conflict,
    EventType,
    Json,
    Kube,
    NotFound,
    PatchType,
)

NAME = "default-scheduler"
TRIED = "pod group preemption: "
SLOW_BIND_S = 40
"""Scenario seconds between two members of a gang, under the planted bug."""


@dataclass(slots=True)
class _Entity:
    """What is scheduled as one: a pod, or the pending members of a gang."""

    pods: list[Json]
    group: Key | None = None
    rank: tuple[int, str, str] = field(default=(0, "", ""))


@dataclass(frozen=True, slots=True)
class _Nomination:
    """Where a pod will go once its victims are gone."""

    node: str
    victims: frozenset[Key]


@dataclass(frozen=True, slots=True)
class _GangNomination:
    """Where the members of a gang will go once its victims are gone. It is tried again as soon as one of them is."""

    placed: tuple[tuple[Json, str], ...]
    victims: frozenset[Key]


class Scheduler:
    def __init__(self, kube: Kube, wall: WallClock, timing: Timing, bugs: Collection[PlantedBug] = ()) -> None:
        self._kube = kube
        self._wall = wall
        self._gangs = PlantedBug.GANG_BOUND_ONE_BY_ONE not in bugs
        self._forgets_members = PlantedBug.GANG_MEMBER_NEVER_REPLACED in bugs
        self._pause_s = timing.clock_s(SLOW_BIND_S) if PlantedBug.GANG_BOUND_SLOWLY in bugs else 0.0
        self._events = EventRecorder(kube, wall, NAME)
        self._pods = Informer(kube, POD)
        self._nodes = Informer(kube, NODE)
        self._groups = Informer(kube, POD_GROUP)
        self._budgets = Informer(kube, PDB)
        self._unbound = self._pods.index(lambda pod: None if node_of(pod) else True)
        self._members = self._pods.index(_gang_of)
        self._cluster = Cluster()
        self._assumed: dict[str, str] = {}  # pod uid → node, until the cache shows the binding
        self._told: dict[str, str] = {}  # pod uid → the refusal that was written last
        self._nominated: dict[str, _Nomination] = {}  # by pod uid
        self._making_room: dict[Key, _GangNomination] = {}  # by gang
        self._reserved: list[tuple[Json, str]] = []  # room kept within one cycle, for those who wait for victims
        self._wake = asyncio.Event()
        self._failures = 0
        self._pods.on_change(self._pod_changed)
        self._nodes.on_change(self._node_changed)
        self._groups.on_change(self._group_changed)

    async def run(self) -> None:
        await run_controller((self._nodes, self._groups, self._budgets, self._pods), self._work)

    # What wakes it. Heartbeats and status writes of running pods must not: they come by the hundred.

    def _pod_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        uid = uid_of(new)
        if node_of(new) or type is EventType.DELETED:
            self._assumed.pop(uid, None)
            self._told.pop(uid, None)
            self._nominated.pop(uid, None)
        if type is EventType.MODIFIED and old is not None and placement_state(new) == placement_state(old):
            return
        if type is EventType.DELETED:
            self._cluster.pod_gone(new)
        elif uid not in self._assumed:
            self._cluster.pod_changed(new)
        self._wake.set()

    def _node_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is EventType.MODIFIED and old is not None and node_state(new) == node_state(old):
            return
        if type is EventType.DELETED:
            self._cluster.node_gone(name_of(new))
        else:
            self._cluster.node_changed(new)
        self._wake.set()

    def _group_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is not EventType.MODIFIED or old is None or new.get("spec") != old.get("spec"):
            self._wake.set()

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            # Changes that arrive together are looked at together: a gang's pods are created one by one.
            await asyncio.sleep(0)
            failed = await self._cycle()
            if failed:
                self._failures += 1
                asyncio.get_running_loop().call_later(retry_delay_s(self._failures), self._wake.set)
            else:
                self._failures = 0

    async def _cycle(self) -> bool:
        """One look at all pending pods. True when a write failed and has to be tried again."""
        failed = False
        for entity in sorted(self._pending(), key=lambda e: e.rank):
            if entity.group is None:
                failed |= await self._schedule_pod(entity.pods[0])
            else:
                failed |= await self._schedule_gang(entity.group, entity.pods)
        for pod, node in self._reserved:
            self._cluster.take_back(pod, node)
        self._reserved.clear()
        return failed

    def _pending(self) -> Iterable[_Entity]:
        gangs: dict[Key, _Entity] = {}
        for pod in sorted(filter(self._is_pending, self._unbound.get(True)), key=_age):
            name = group_name(pod) if self._gangs else None
            if name is None:
                yield _Entity([pod], None, (-priority_of(pod), *_age(pod)))
                continue
            key = (namespace_of(pod), name)
            entity = gangs.setdefault(key, _Entity([], key, (-priority_of(pod), *_age(pod))))
            entity.pods.append(pod)
            entity.rank = min(entity.rank, (-priority_of(pod), *_age(pod)))
        yield from gangs.values()

    def _is_pending(self, pod: Json) -> bool:
        spec = pod["spec"]
        return (
            uid_of(pod) not in self._assumed
            and is_active(pod)
            and not spec.get("schedulingGates")
            and spec.get("schedulerName", NAME) == NAME
        )

    async def _schedule_pod(self, pod: Json) -> bool:
        waits = self._nominated.get(uid_of(pod))
        if waits is not None and any(self._holds_room(key) for key in waits.victims):
            self._reserve([(pod, waits.node)])  # its victims are still there
            return False
        choice = self._cluster.choose(pod)
        if not isinstance(choice, str):
            return await self._make_room(pod, choice)
        self._cluster.place(pod, choice)
        return not await self._bind(pod, choice)

    def _holds_room(self, key: Key) -> bool:
        pod = self._pods.objects.get(key)
        return pod is not None and holds_room(pod)

    async def _make_room(self, pod: Json, refusals: Mapping[str, Refusal]) -> bool:
        """True when something could not be written."""
        budgets, groups = list(self._budgets.objects.values()), self._groups.objects
        plan = plan_preemption(self._cluster, pod, refusals, budgets, groups if self._gangs else None)
        if isinstance(plan, str):
            self._nominated.pop(uid_of(pod), None)
            return await self._refuse(pod, explain(refusals, plan))
        failed = False
        for victim in plan.victims:
            failed |= await self._preempt(pod, "pod", plan.node, victim)
        if failed:
            return True
        self._nominated[uid_of(pod)] = _Nomination(plan.node, frozenset(map(key_of, plan.victims)))
        self._reserve([(pod, plan.node)])
        return await self._refuse(pod, explain(refusals, plan.sentence), plan.node)

    async def _preempt(self, preemptor: Json, kind: str, where: str, victim: Json) -> bool:
        """True when the victim could not be asked to go."""
        if is_terminating(victim):
            return False
        why = f"{NAME}: preempting to accommodate a higher priority {kind}"
        current = self._pods.objects.get(key_of(victim), victim)
        patch = disruption_patch(current, REASON, why, self._wall.stamp())
        try:
            await self._kube.patch(
                POD, name_of(victim), patch, namespace_of(victim), type=PatchType.STRATEGIC, subresource="status"
            )
            await self._kube.delete(POD, name_of(victim), namespace_of(victim), uid=uid_of(victim))
        except NotFound:
            return False
        except (ApiError, ConnectionError):
            return True
        message = f"Preempted by {kind} {uid_of(preemptor)} on node {where}"
        await self._events.normal(POD, victim, "Preempted", message)
        return False

    async def _schedule_gang(self, key: Key, pending: Sequence[Json]) -> bool:
        group = self._groups.objects.get(key)
        bound = self._bound_members(key)
        if group is None or not is_complete(group, bound + len(pending)):
            return False
        waits = self._making_room.pop(key, None)
        if waits is not None and all(map(self._holds_room, waits.victims)):
            self._making_room[key] = waits
            self._reserve(waits.placed)
            return False
        found = refused_group(group, pending) or plan_gang(self._cluster, group, pending, bound)
        failed = False
        if isinstance(found, GangRefused):
            plan, failed = await self._make_room_for_gang(key, group, found, bound)
        else:
            plan = found
        for pod, node in plan.placed:
            self._assumed[uid_of(pod)] = node
        for pod, node in plan.placed[: plan.waited]:
            await self._announce(pod, node)
        for place, (pod, node) in enumerate(plan.placed):
            if place and self._pause_s:
                await asyncio.sleep(self._pause_s)
            failed |= not await self._bind(pod, node)
        nominated = {uid_of(pod): node for pod, node in plan.nominated}
        for pod, message in plan.refused:
            failed |= await self._refuse(pod, message, nominated.get(uid_of(pod)), plan.reason)
        return failed | await self._write_group(key, plan)

    async def _make_room_for_gang(
        self, key: Key, group: Json, refused: GangRefused, bound: int
    ) -> tuple[GangPlan, bool]:
        """What comes of it, and whether something could not be written."""
        budgets = list(self._budgets.objects.values())
        room = plan_gang_preemption(self._cluster, group, refused.pending, bound, self._groups.objects, budgets)
        if isinstance(room, str):
            return refused.told(TRIED + room if room == NO_VICTIMS else f"{RESOLVABLE}, {TRIED}{room}"), False
        failed = False
        for victim in room.victims:
            failed |= await self._preempt(group, "podgroup", "cluster", victim)
        self._making_room[key] = _GangNomination(room.placed, frozenset(map(key_of, room.victims or room.leaving)))
        self._reserve(room.placed)
        return replace(refused.told(TRIED + room.sentence, waiting=True), nominated=room.placed), failed

    def _reserve(self, placed: Iterable[tuple[Json, str]]) -> None:
        """Who comes later in this cycle must not take what victims leave."""
        for pod, node in placed:
            self._cluster.place(pod, node)
            self._reserved.append((pod, node))

    async def _announce(self, pod: Json, node: str) -> None:
        """While the members of a gang wait for each other, each says where it will be."""
        patch = {"status": {"nominatedNodeName": node}}
        try:
            await self._kube.patch(POD, name_of(pod), patch, namespace_of(pod), subresource="status")
        except (ApiError, ConnectionError):
            return  # nobody depends on it; the binding tells

    def _bound_members(self, key: Key) -> int:
        """Members that have a node and stay there; one on its way out counts no more."""
        if self._forgets_members:
            return 0
        return sum(bool(node_of(p) or uid_of(p) in self._assumed) and is_active(p) for p in self._members.get(key))

    async def _bind(self, pod: Json, node: str) -> bool:
        """False when it has to be tried again."""
        self._assumed[uid_of(pod)] = node
        try:
            await self._kube.bind(name_of(pod), namespace_of(pod), node)
        except (Conflict, NotFound):
            self._give_up(pod)  # bound by somebody else, or gone; the cache will tell
            return True
        except (ApiError, ConnectionError):
            self._give_up(pod)
            return False
        message = f"Successfully assigned {namespace_of(pod)}/{name_of(pod)} to {node}"
        await self._events.normal(POD, pod, "Scheduled", message)
        return True

    def _give_up(self, pod: Json) -> None:
        self._assumed.pop(uid_of(pod), None)
        current = self._pods.objects.get(key_of(pod))
        if current is None:
            self._cluster.pod_gone(pod)
        else:
            self._cluster.pod_changed(current)

    async def _refuse(
        self, pod: Json, message: str, nominated: str | None = None, reason: str = "Unschedulable"
    ) -> bool:
        """True when the condition could not be written."""
        if self._told.get(uid_of(pod)) == message:
            return False
        condition = {
            "type": "PodScheduled", "status": "False", "lastProbeTime": None, "reason": reason,
            "message": message, "observedGeneration": int(pod["metadata"].get("generation") or 1),
        }  # fmt: skip
        current = self._pods.objects.get(key_of(pod), pod)
        conditions = (current.get("status") or {}).get("conditions")
        made = with_condition(conditions, condition, self._wall.stamp())
        status: Json = {"conditions": [c for c in made if c["type"] == "PodScheduled"]}
        if nominated is not None:
            status["nominatedNodeName"] = nominated
        patch = {"status": status}
        try:
            await self._kube.patch(
                POD, name_of(pod), patch, namespace_of(pod), type=PatchType.STRATEGIC, subresource="status"
            )
        except NotFound:
            return False
        except (ApiError, ConnectionError):
            return True
        self._told[uid_of(pod)] = message
        await self._events.warning(POD, pod, "FailedScheduling", message)
        return False

    async def _write_group(self, key: Key, plan: GangPlan) -> bool:
        """True when the status could not be written."""
        group = self._groups.objects.get(key)
        status = None if group is None else group_status(group, plan, self._wall.stamp())
        if group is None or status is None:
            return False
        try:
            await self._kube.update(POD_GROUP, merged(group, status=status), subresource="status")
        except NotFound:
            return False
        except (ApiError, ConnectionError):
            return True
        return False


def _gang_of(pod: Json) -> Key | None:
    name = group_name(pod)
    return None if name is None else (namespace_of(pod), name)


def _age(pod: Json) -> tuple[str, str]:
    return str(pod["metadata"].get("creationTimestamp", "")), name_of(pod)
