"""Groups of one leader and its workers that live and die together: LeaderWorkerSet, as of LWS v0.8.

A group that loses a member, or in which a container restarted, is made anew as a whole by deleting its leader, whose
workers go with it. It is no gang: its pods are bound one by one, and may hold GPUs while others wait.
"""

from __future__ import annotations

from contextlib import suppress

from fakes.clock import WallClock
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.events import EventRecorder
from fakes.controllers.informer import Informer, Key, key_of
from fakes.controllers.leaderworkerset_objects import (
    GROUP_INDEX,
    LEADER_READY,
    NAME,
    REVISION,
    WORKER_INDEX,
    leader_set,
    replicas_of,
    restarts_whole,
    revision_of,
    rolling_of,
    selector_of,
    service,
    size_of,
    worker_set,
)
from fakes.controllers.objects import (
    controller_uid,
    is_ready,
    is_terminal,
    is_terminating,
    merged,
    name_of,
    namespace_of,
    uid_of,
    with_condition,
)
from fakes.controllers.quantity import scaled_value
from fakes.controllers.statefulset import ordinal
from harness.kube.port import (
    LEADER_WORKER_SET,
    POD,
    SERVICE,
    STATEFUL_SET,
    AlreadyExists,
    EventType,
    Json,
    Kube,
    NotFound,
)

AVAILABLE, PROGRESSING, UPDATING = "Available", "Progressing", "UpdateInProgress"
SAYS = {
    AVAILABLE: ("AllGroupsReady", "All replicas are ready"),
    PROGRESSING: ("GroupsProgressing", "Replicas are progressing"),
    UPDATING: ("GroupsUpdating", "Rolling Upgrade is in progress"),
}


class LeaderWorkerSetController:
    def __init__(self, kube: Kube, wall: WallClock) -> None:
        self._kube = kube
        self._wall = wall
        self._events = EventRecorder(kube, wall, "leaderworkerset")
        self._lws = Informer(kube, LEADER_WORKER_SET)
        self._sets = Informer(kube, STATEFUL_SET, label_selector=NAME)
        self._pods = Informer(kube, POD, label_selector=NAME)
        self._templates: dict[tuple[str, str], Json] = {}
        self._members = self._pods.index(_set_of)
        self._loop: Reconciler[Key] = Reconciler(self._sync)
        self._lws.on_change(lambda type, new, old: self._loop.queue.add(key_of(new)))
        self._sets.on_change(self._part_changed)
        self._pods.on_change(self._part_changed)

    async def run(self) -> None:
        await run_controller((self._lws, self._sets, self._pods), self._loop.run)

    def _part_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        self._loop.queue.add(_set_of(new))

    async def _sync(self, key: Key) -> None:
        lws = self._lws.objects.get(key)
        if lws is None or is_terminating(lws):
            return
        leaders = {ordinal(p): p for p in self._members.get(key) if _label(p, WORKER_INDEX) == "0"}
        self._templates[uid_of(lws), revision_of(lws)] = lws["spec"]["leaderWorkerTemplate"]
        await self._lead(lws, leaders)
        for leader in leaders.values():
            if not await self._restart(lws, leader):
                await self._staff(lws, leader)
        await self._write_status(lws, leaders)

    async def _lead(self, lws: Json, leaders: dict[int, Json]) -> None:
        """The StatefulSet of the leaders, its template and how far an update may go."""
        found = self._sets.objects.get(key_of(lws))
        if found is None:
            with suppress(AlreadyExists):
                await self._kube.create(SERVICE, service(lws), namespace_of(lws))
            with suppress(AlreadyExists):
                made = leader_set(lws, rolling_of(lws)[1], 1)
                await self._kube.create(STATEFUL_SET, made, namespace_of(lws))
                said = f"Created leader statefulset {name_of(lws)}"
                await self._events.normal(LEADER_WORKER_SET, lws, "GroupsProgressing", said)
            return
        at_once = max(1, scaled_value(rolling_of(lws)[0], replicas_of(lws), round_up=False))
        wanted = leader_set(lws, self._partition(lws, leaders, at_once), at_once)["spec"]
        spec = {
            **found["spec"],
            "replicas": wanted["replicas"],
            "updateStrategy": wanted["updateStrategy"],
        }
        changed = spec["replicas"] != found["spec"].get("replicas") or (
            spec["updateStrategy"] != found["spec"].get("updateStrategy")
        )
        if _label(found, REVISION) != revision_of(lws):
            spec["template"] = wanted["template"]
            changed = True
        if changed:
            meta = {**found["metadata"], "labels": {**found["metadata"]["labels"], REVISION: revision_of(lws)}}
            await self._kube.update(STATEFUL_SET, merged(found, metadata=meta, spec=spec))

    def _partition(self, lws: Json, leaders: dict[int, Json], at_once: int) -> int:
        """From the last group downward, as many beyond those that are new and ready as may be away at once."""
        revision, done = revision_of(lws), 0
        for number in range(replicas_of(lws) - 1, -1, -1):
            leader = leaders.get(number)
            if leader is None or _label(leader, REVISION) != revision or not self._is_group_ready(lws, leader):
                break
            done += 1
        return max(rolling_of(lws)[1], replicas_of(lws) - done - at_once, 0)

    async def _restart(self, lws: Json, leader: Json) -> bool:
        """Whether the group is on its way out, or was sent there."""
        if is_terminating(leader):
            return True
        if not restarts_whole(lws):
            return False
        lost = leader if _has_restarted(leader) else next(filter(_is_lost, self._workers(lws, leader)), None)
        if lost is None:
            return False
        with suppress(NotFound):
            await self._kube.delete(
                POD, name_of(leader), namespace_of(leader), uid=uid_of(leader), propagation="Foreground"
            )
        said = (
            f"Worker pod {name_of(lost)} failed, deleted leader pod {name_of(leader)} to recreate group "
            f"{_label(leader, GROUP_INDEX)}"
        )
        await self._events.normal(LEADER_WORKER_SET, lws, "RecreateGroup", said)
        return True

    def _workers(self, lws: Json, leader: Json) -> list[Json]:
        """Of this very leader: those of the one before it may still be on their way out."""
        mine = self._worker_set(leader)
        return [p for p in self._members.get(key_of(lws)) if mine is not None and controller_uid(p) == uid_of(mine)]

    def _worker_set(self, leader: Json) -> Json | None:
        found = self._sets.objects.get(key_of(leader))
        return found if found is not None and controller_uid(found) == uid_of(leader) else None

    async def _staff(self, lws: Json, leader: Json) -> None:
        """The StatefulSet of a leader's workers, once the startup policy has it."""
        if size_of(lws) == 1 or is_terminal(leader):
            return
        if lws["spec"].get("startupPolicy") == LEADER_READY and not is_ready(leader):
            return
        if key_of(leader) in self._sets.objects:
            return  # also one of the leader before: its end brings us back
        template = self._templates.get((uid_of(lws), _label(leader, REVISION)))
        if template is None:
            return  # of a revision that nobody remembers: the update replaces it
        then = merged(lws, spec={**lws["spec"], "leaderWorkerTemplate": template})
        with suppress(AlreadyExists):
            await self._kube.create(STATEFUL_SET, worker_set(then, leader), namespace_of(lws))
            said = f"Created worker statefulset for leader pod {name_of(leader)}"
            await self._events.normal(LEADER_WORKER_SET, lws, "GroupsProgressing", said)

    def _is_group_ready(self, lws: Json, leader: Json) -> bool:
        if not is_ready(leader) or is_terminating(leader):
            return False
        if size_of(lws) == 1:
            return True
        workers = self._worker_set(leader)
        if workers is None:
            return False
        return int((workers.get("status") or {}).get("readyReplicas") or 0) == size_of(lws) - 1

    async def _write_status(self, lws: Json, leaders: dict[int, Json]) -> None:
        old = lws.get("status") or {}
        wanted, revision = replicas_of(lws), revision_of(lws)
        mine = [p for n, p in leaders.items() if n < wanted]
        ready = sum(self._is_group_ready(lws, p) for p in mine)
        updated = sum(_label(p, REVISION) == revision for p in mine)
        updated_and_ready = sum(_label(p, REVISION) == revision and self._is_group_ready(lws, p) for p in mine)
        frozen = min(rolling_of(lws)[1], wanted)
        if updated < len(mine) - frozen or (updated_and_ready < wanted - frozen and _is_on(old, UPDATING)):
            on = {PROGRESSING, UPDATING}
        elif ready == wanted == len(leaders):
            on = {AVAILABLE}
        else:
            on = {PROGRESSING}
        conditions = list(old.get("conditions") or ())
        known = {c["type"] for c in conditions}
        for type, (reason, message) in SAYS.items():
            if type in on or type in known:
                new = {"type": type, "status": str(type in on), "reason": reason, "message": message}
                conditions = with_condition(conditions, new, self._wall.stamp())
        status: Json = {
            "conditions": conditions,
            "hpaPodSelector": selector_of(lws),
            "readyReplicas": ready,
            "replicas": len(leaders),
            "updatedReplicas": updated,
        }
        if status != {**old, "conditions": old.get("conditions")}:
            await self._kube.update(LEADER_WORKER_SET, merged(lws, status=status), subresource="status")


def _set_of(obj: Json) -> Key:
    """Namespace and name of the LeaderWorkerSet that a part belongs to."""
    return namespace_of(obj), _label(obj, NAME)


def _label(obj: Json, label: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(label, ""))


def _is_lost(pod: Json) -> bool:
    return is_terminating(pod) or is_terminal(pod) or _has_restarted(pod)


def _has_restarted(pod: Json) -> bool:
    status = pod.get("status") or {}
    statuses = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    return any(int(s.get("restartCount") or 0) > 0 for s in statuses)


def _is_on(status: Json, type: str) -> bool:
    return any(c["type"] == type and c["status"] == "True" for c in status.get("conditions") or ())
