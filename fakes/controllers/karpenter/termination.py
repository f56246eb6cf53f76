"""Takes nodes away: interruption notices, drains through the Eviction API, and the end of instance, node and claim."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from fakes.clock import WallClock, parse_stamp
from fakes.cloud.cloud import Cloud, Instance, InstanceState
from fakes.config import PlantedBug
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.events import EventRecorder
from fakes.controllers.informer import Informer
from fakes.controllers.karpenter import api
from fakes.controllers.karpenter.candidates import is_kept
from fakes.controllers.karpenter.nodepools import duration_s
from fakes.controllers.karpenter.state import is_of_daemon_set
from fakes.controllers.objects import (
    condition_of,
    is_active,
    is_terminal,
    is_terminating,
    merged,
    name_of,
    namespace_of,
    node_of,
    uid_of,
)
from fakes.controllers.placement import tolerated
from fakes.timing import Timing
from harness.kube.port import (
    NODE,
    NODE_CLAIM,
    POD,
    ApiError,
    EventType,
    Json,
    Kube,
    NotFound,
    Resource,
)

CORDON_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
CRITICAL_CLASSES = ("system-cluster-critical", "system-node-critical")


class Termination:
    """A claim that is deleted, by a notice or by anybody, takes its node along: no more pods onto it, all off it, the
    instance terminated, and only then the objects gone. When the instance goes first, there is nothing left to drain.

    A notice that is cancelled stops none of this: Karpenter is never told.
    """

    def __init__(
        self, kube: Kube, wall: WallClock, timing: Timing, cloud: Cloud, bugs: Collection[PlantedBug] = ()
    ) -> None:
        self._kube = kube
        self._wall = wall
        self._timing = timing
        self._cloud = cloud
        self._bugs = frozenset(bugs)
        self._removed_fresh = False
        self._events = EventRecorder(kube, wall, "karpenter")
        self._pods = Informer(kube, POD)
        self._pods_on = self._pods.index(lambda pod: node_of(pod) or None)
        self._nodes = Informer(kube, NODE)
        self._claims = Informer(kube, NODE_CLAIM)
        self._work: Reconciler[str] = Reconciler(self._reconcile)
        self._notices: Reconciler[str] = Reconciler(self._interrupted)
        self._advice: Reconciler[str] = Reconciler(self._advised)
        self._evicting: dict[str, asyncio.Task[None]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._claims.on_change(self._changed)
        self._nodes.on_change(self._changed)
        self._pods.on_change(self._pod_changed)
        cloud.on_notice.append(lambda instance: self._notices.queue.add(instance.node))
        cloud.on_rebalance.append(lambda instance: self._advice.queue.add(instance.node))
        cloud.on_gone.append(lambda instance: self._work.queue.add(instance.node))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            informers = (self._pods, self._nodes, self._claims)
            await run_controller(informers, self._work.run, self._notices.run, self._advice.run)

    def _changed(self, type: EventType, new: Json, old: Json | None) -> None:
        self._work.queue.add(name_of(new))

    def _pod_changed(self, type: EventType, pod: Json, old: Json | None) -> None:
        if api.is_going(self._claims.objects.get(("", node_of(pod)))):
            self._work.queue.add(node_of(pod))

    async def _interrupted(self, name: str) -> None:
        claim, node = self._claims.objects.get(("", name)), self._nodes.objects.get(("", name))
        if claim is None or is_terminating(claim):
            return
        found: list[tuple[Resource, Json]] = [(NODE_CLAIM, claim)]
        if node is not None:
            found.append((NODE, node))
        await self._delete(NODE_CLAIM, name)
        if PlantedBug.DRAIN_TAINTS_ANOTHER_NODE in self._bugs:
            await self._mark_another(name, cordon=False)
        if PlantedBug.DRAIN_CORDONS_ANOTHER_NODE in self._bugs:
            await self._mark_another(name, cordon=True)
        for resource, obj in found:
            await self._events.warning(resource, obj, "SpotInterrupted", "Spot interruption warning was triggered")
            said = f"Interruption triggered termination for the {resource.kind}"
            await self._events.warning(resource, obj, "TerminatingOnInterruption", said)

    async def _advised(self, name: str) -> None:
        """A rebalance recommendation is news, no more: Karpenter does nothing about it."""
        for resource, informer in ((NODE_CLAIM, self._claims), (NODE, self._nodes)):
            if (obj := informer.objects.get(("", name))) is not None:
                said = "Spot rebalance recommendation was triggered"
                await self._events.normal(resource, obj, "SpotRebalanceRecommendation", said)

    async def _mark_another(self, name: str, *, cordon: bool) -> None:
        """A planted bug: the taint, or a cordon, goes to a second node too, and nobody takes it away."""
        others = sorted((n for n in self._nodes.values() if name_of(n) != name), key=name_of)
        if others:
            spec = others[0].get("spec") or {}
            taint = CORDON_TAINT if cordon else api.DISRUPTED_TAINT
            spec = {**spec, "taints": [*(spec.get("taints") or ()), taint]}
            spec |= {"unschedulable": True} if cordon else {}
            await self._kube.update(NODE, merged(others[0], spec=spec))

    async def _reconcile(self, name: str) -> None:
        """One write per pass: its echo brings the next."""
        claim, node = self._claims.objects.get(("", name)), self._nodes.objects.get(("", name))
        instance = self._cloud.instances.get(f"i-{name}")
        gone = instance is None or instance.state is InstanceState.TERMINATED
        if claim is None:
            if node is not None and is_terminating(node):
                await self._release(NODE, node)
        elif not is_terminating(claim):
            if api.is_going(node) or (gone and instance is not None):
                await self._delete(NODE_CLAIM, name)
            elif PlantedBug.NEW_NODE_REMOVED_AT_ONCE in self._bugs:
                await self._remove_fresh(claim, instance)
        elif await self._set_deadline(claim):
            return
        elif node is not None and not is_terminating(node):
            await self._delete(NODE, name)
        elif (
            gone
            or node is None
            or await self._is_empty(claim, node)
            or (PlantedBug.INSTANCE_ENDED_UNDRAINED in self._bugs and _is_disrupted(node))
        ):
            await self._finish(claim, node, instance)

    async def _is_empty(self, claim: Json, node: Json) -> bool:
        """Puts the node on its way out, and says whether the last pod has left it."""
        if not _is_disrupted(node):
            taints = [*((node.get("spec") or {}).get("taints") or ()), api.DISRUPTED_TAINT]
            await self._kube.update(NODE, merged(node, spec={**(node.get("spec") or {}), "taints": taints}))
            return False
        leaving = drain_group(self._pods_on.get(name_of(node)))
        left_s = self._left_s(claim)
        for pod in leaving:
            if is_active(pod) and not self._is_kept(pod):
                self._start_evicting(pod, node)
            if left_s is not None:
                await self._hurry(pod, left_s, node)
        if left_s is not None and left_s <= 0 and leaving:
            said = f"Node is terminated with {len(leaving)} pods on it: its termination grace period is over"
            await self._events.warning(NODE, node, "TerminationGracePeriodExpiring", said)
            return not await self._set(
                claim, api.condition(api.DRAINED, "False", "TerminationGracePeriodElapsed", said)
            )
        if leaving:
            await self._set(claim, api.condition(api.DRAINED, "Unknown", "Draining", "Draining"))
            return False
        if await self._set(claim, api.condition(api.DRAINED, "True")):
            return False
        return not await self._set(claim, api.condition(api.VOLUMES_DETACHED, "True"))

    def _is_kept(self, pod: Json) -> bool:
        ignored = PlantedBug.DO_NOT_DISRUPT_IGNORED in self._bugs
        return not ignored and is_kept(pod, self._wall.now(), self._timing.time_scale)

    async def _set_deadline(self, claim: Json) -> bool:
        """Writes down when the drain ends by force, if it ever does; whether it was written just now."""
        grace_s = duration_s((claim.get("spec") or {}).get("terminationGracePeriod"))
        annotations = claim["metadata"].get("annotations") or {}
        if grace_s is None or api.DEADLINE_ANNOTATION in annotations:
            return False
        at = parse_stamp(claim["metadata"]["deletionTimestamp"]) + timedelta(seconds=self._timing.clock_s(grace_s))
        meta = {**claim["metadata"], "annotations": {**annotations, api.DEADLINE_ANNOTATION: at.isoformat()}}
        await self._kube.update(NODE_CLAIM, merged(claim, metadata=meta))
        return True

    def _left_s(self, claim: Json) -> float | None:
        """Clock seconds until the drain ends by force; None when it never does."""
        at = (claim["metadata"].get("annotations") or {}).get(api.DEADLINE_ANNOTATION)
        return None if at is None else (datetime.fromisoformat(at) - self._wall.now()).total_seconds()

    async def _hurry(self, pod: Json, left_s: float, node: Json) -> None:
        """Near the end a pod is deleted with the grace that is left, whatever budgets and annotations say."""
        grace_s = float(pod["spec"].get("terminationGracePeriodSeconds", 30))
        due_s = left_s - self._timing.clock_s(grace_s)
        if due_s > 0:
            self._work.queue.add_after(name_of(node), due_s)
            return
        if left_s > 0:
            self._work.queue.add_after(name_of(node), left_s)
        left = max(1, int(left_s * self._timing.time_scale))
        meta = pod["metadata"]
        if meta.get("deletionTimestamp") and int(meta.get("deletionGracePeriodSeconds") or 0) <= left:
            return
        said = (
            f"Deleting the pod to accommodate the terminationTime of the node. The pod was granted {left} seconds of "
            f"grace-period of its {grace_s:.0f} terminationGracePeriodSeconds. This bypasses the PDB of the pod and "
            "the do-not-disrupt annotation."
        )
        await self._events.normal(POD, pod, "Disrupted", said)
        with suppress(NotFound):
            await self._kube.delete(POD, name_of(pod), namespace_of(pod), grace_s=left, uid=uid_of(pod))

    async def _finish(self, claim: Json, node: Json | None, instance: Instance | None) -> None:
        if instance is not None and instance.state is not InstanceState.TERMINATED:
            if await self._set(claim, api.condition(api.INSTANCE_TERMINATING, "True")):
                return
            self._cloud.terminate(instance.id)
        if node is not None:
            if PlantedBug.NODE_LEFT_OVER not in self._bugs:
                await self._release(NODE, node)
        elif PlantedBug.CLAIM_LEFT_OVER not in self._bugs:
            await self._release(NODE_CLAIM, claim)

    async def _remove_fresh(self, claim: Json, instance: Instance | None) -> None:
        """A planted bug: the first node that was made is given up as soon as it is usable, and ordered again."""
        if (
            instance is not None
            and instance.machine.provisioned
            and api.is_initialized(claim)
            and not self._removed_fresh
        ):
            self._removed_fresh = True
            await self._delete(NODE_CLAIM, name_of(claim))

    async def _set(self, claim: Json, new: Json) -> bool:
        """Whether there was anything to write."""
        old = condition_of(claim, new["type"])
        if old is not None and all(old.get(k) == v for k, v in new.items()):
            return False
        status = api.with_conditions(claim, [new], self._wall.stamp())
        await self._kube.update(NODE_CLAIM, merged(claim, status=status), subresource="status")
        return True

    async def _release(self, resource: Resource, obj: Json) -> None:
        if not api.has_finalizer(obj):
            return
        try:
            await self._kube.update(resource, api.without_finalizer(obj))
        except NotFound:
            return

    async def _delete(self, resource: Resource, name: str) -> None:
        try:
            await self._kube.delete(resource, name)
        except NotFound:
            return

    def _start_evicting(self, pod: Json, node: Json) -> None:
        uid = uid_of(pod)
        if uid in self._evicting or self._tasks is None:
            return
        task = self._tasks.create_task(self._evict(pod, node))
        self._evicting[uid] = task
        task.add_done_callback(lambda _: self._evicting.pop(uid, None))

    async def _evict(self, pod: Json, node: Json) -> None:
        """Each pod on its own: one that a budget holds back does not hold back the others."""
        while self._is_still_there(pod):
            if await self._try_to_evict(pod, node):
                return
            await asyncio.sleep(self._timing.clock_s(self._timing.durations.eviction_retry_s))

    def _is_still_there(self, pod: Json) -> bool:
        now = self._pods.objects.get((namespace_of(pod), name_of(pod)))
        instance = self._cloud.instances.get(f"i-{node_of(pod)}")
        lost = instance is not None and instance.state is InstanceState.TERMINATED
        return now is not None and uid_of(now) == uid_of(pod) and is_active(now) and not lost

    async def _try_to_evict(self, pod: Json, node: Json) -> bool:
        try:
            if PlantedBug.DRAIN_IGNORES_PDB in self._bugs:
                await self._kube.delete(POD, name_of(pod), namespace_of(pod), uid=uid_of(pod))
            else:
                await self._kube.evict(name_of(pod), namespace_of(pod))
        except NotFound:
            return True
        except (ApiError, ConnectionError) as error:
            # 429: a budget refuses. 500: more than one budget covers the pod. Both are tried again.
            why = str(error.message) if isinstance(error, ApiError) else str(error)
            said = f"Failed to drain node, evicting pod {namespace_of(pod)}/{name_of(pod)}: {why}"
            await self._events.warning(NODE, node, "FailedDraining", said)
            return False
        await self._events.normal(POD, pod, "Evicted", "Evicted pod: Forceful Termination")
        return True


def drain_group(pods: Iterable[Json]) -> list[Json]:
    """The pods that must leave next: critical ones after all others. Those on their way out still count; those of
    DaemonSets, those that tolerate the taint and those that have ended do not. Pure."""
    leaving = [p for p in pods if _must_leave(p)]
    others = [p for p in leaving if p["spec"].get("priorityClassName") not in CRITICAL_CLASSES]
    return others or leaving


def _must_leave(pod: Json) -> bool:
    if is_of_daemon_set(pod) or tolerated(api.DISRUPTED_TAINT, pod["spec"].get("tolerations") or ()):
        return False
    return is_terminating(pod) or not is_terminal(pod)


def _is_disrupted(node: Json) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(t["key"] == api.DISRUPTED_TAINT["key"] for t in taints)
