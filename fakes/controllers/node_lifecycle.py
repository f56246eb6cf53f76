"""Watches over nodes: a silent one becomes Unknown, a node that is not ready is tainted, its pods are taken off.

Silence is measured by this controller's own clock: how long ago it last saw a lease renewed or a status posted. What
the node wrote into the lease plays no part, so skewed clocks of nodes do no harm.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass

from fakes.clock import WallClock
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.events import EventRecorder
from fakes.controllers.informer import Informer
from fakes.controllers.node_health import (
    NOT_READY,
    UNREACHABLE,
    Disruption,
    disruption_of,
    evictions_per_s,
    has_no_execute,
    no_schedule_keys,
    ready_status,
    silent_conditions,
    with_no_execute,
    with_no_schedule,
    zone_of,
)
from fakes.controllers.objects import (
    condition_of,
    is_terminal,
    merged,
    name_of,
    namespace_of,
    node_of,
    with_condition,
)
from fakes.controllers.taint_eviction import TaintEviction
from fakes.timing import Timing
from harness.kube.port import LEASE, NODE, POD, ApiError, EventType, Json, Kube, NotFound, PatchType

LEASES = "kube-node-lease"
STARTUP_GRACE_S = 60.0
NO_EXECUTE_PASS_S = 0.1


@dataclass(slots=True)
class _Seen:
    """A node's last sign of life, in loop time."""

    at_s: float
    heartbeat: str | None
    renewed: str | None


class NodeLifecycleController:
    def __init__(self, kube: Kube, wall: WallClock, timing: Timing) -> None:
        self._kube = kube
        self._wall = wall
        self._timing = timing
        self._events = EventRecorder(kube, wall, "node-controller")
        self._nodes = Informer(kube, NODE)
        self._pods = Informer(kube, POD)
        self._leases = Informer(kube, LEASE, LEASES)
        self._seen: dict[str, _Seen] = {}
        self._to_taint: dict[str, None] = {}  # nodes that wait for their NoExecute taint, in order
        self._line_filled = asyncio.Event()
        self._well: dict[str, Json] = {}  # the last state of nodes about which there was nothing to do
        self._unreported: set[str] = set()  # fell silent, and not all of their pods are marked yet
        self._next_taint_s: dict[str, float] = defaultdict(float)  # by zone
        self._rates: dict[str, float] = {}
        self._all_down = False
        self._taints: Reconciler[str] = Reconciler(self._put_right)
        self._on_node = self._pods.index(lambda pod: node_of(pod) or None)
        self._eviction = TaintEviction(kube, wall, timing, self._nodes, self._pods, self._on_node)
        self._nodes.on_change(self._node_changed)

    async def run(self) -> None:
        informers = (self._nodes, self._pods, self._leases)
        await run_controller(informers, self._monitor, self._taint_slowly, self._taints.run, self._eviction.run)

    def _node_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is EventType.DELETED:
            self._seen.pop(name_of(new), None)
            self._well.pop(name_of(new), None)
            self._to_taint.pop(name_of(new), None)
            self._unreported.discard(name_of(new))
            return
        if old is None or no_schedule_keys(old) != no_schedule_keys(new) or _taints(old) != _taints(new):
            self._taints.queue.add(name_of(new))

    async def _put_right(self, name: str) -> None:
        """NoSchedule taints follow the conditions at once."""
        node = self._nodes.objects.get(("", name))
        taints = None if node is None else with_no_schedule(node, self._wall.stamp())
        if node is not None and taints is not None:
            await self._write_taints(node, taints)

    async def _write_taints(self, node: Json, taints: list[Json]) -> None:
        try:
            await self._kube.update(NODE, merged(node, spec={**(node.get("spec") or {}), "taints": taints}))
        except NotFound:
            return

    async def _monitor(self) -> None:
        """Each pass first settles what every node is, then what that means for all of them together."""
        while True:
            for node in sorted(self._nodes.values(), key=name_of):
                try:
                    await self._judge(node)
                except (ApiError, ConnectionError):
                    continue  # the next pass sees it again
            await self._weigh_disruption()
            await asyncio.sleep(self._timing.clock_s(self._timing.durations.node_monitor_s))

    async def _judge(self, node: Json) -> None:
        name = name_of(node)
        if self._is_well(name, node):
            return
        before = ready_status(node)
        node = await self._note_silence(node)
        now = ready_status(node)
        if now == "True":
            self._to_taint.pop(name, None)
            self._unreported.discard(name)
            if not has_no_execute(node):
                self._well[name] = node
            taints = with_no_execute(node, None, self._wall.stamp())
            if taints is not None:
                await self._write_taints(node, taints)
            return
        if now == "Unknown" and before == "True":
            self._unreported.add(name)
        if name in self._unreported:
            await self._report_silent(node)
            self._unreported.discard(name)
        key = _no_execute_key(node)
        if has_no_execute(node):
            taints = with_no_execute(node, key, self._wall.stamp())  # not-ready became unreachable, or the reverse
            if taints is not None:
                await self._write_taints(node, taints)
        elif condition_of(node, "Ready") is not None and not self._all_down:
            self._to_taint.setdefault(name)
            self._line_filled.set()

    def _is_well(self, name: str, node: Json) -> bool:
        """Ready when last looked at, unchanged since, and heard of: there is nothing to do about most nodes."""
        if self._well.get(name) is not node:
            self._well.pop(name, None)
            return False
        now_s = asyncio.get_running_loop().time()
        seen = self._signs_of_life(node, now_s)
        if now_s - seen.at_s < self._timing.clock_s(self._timing.durations.node_monitor_grace_s) - 1e-9:
            return True
        del self._well[name]
        return False

    async def _note_silence(self, node: Json) -> Json:
        """The node, with Unknown conditions once it was silent for too long."""
        now_s = asyncio.get_running_loop().time()
        seen = self._signs_of_life(node, now_s)
        ready = condition_of(node, "Ready")
        grace_s = self._timing.durations.node_monitor_grace_s if ready is not None else STARTUP_GRACE_S
        if now_s - seen.at_s < self._timing.clock_s(grace_s) - 1e-9:
            return node
        conditions = silent_conditions(node, self._wall.stamp())
        if conditions == ((node.get("status") or {}).get("conditions") or []):
            return node
        status = {**(node.get("status") or {}), "conditions": conditions}
        return await self._kube.update(NODE, merged(node, status=status), subresource="status")

    def _signs_of_life(self, node: Json, now_s: float) -> _Seen:
        name = name_of(node)
        lease = self._leases.objects.get((LEASES, name))
        renewed = (lease or {}).get("spec", {}).get("renewTime")
        heartbeat = (condition_of(node, "Ready") or {}).get("lastHeartbeatTime")
        seen = self._seen.get(name)
        if seen is None or seen.renewed != renewed or seen.heartbeat != heartbeat:
            seen = self._seen[name] = _Seen(now_s, heartbeat, renewed)
        return seen

    async def _report_silent(self, node: Json) -> None:
        """Its pods are no endpoints any more; their containers may well run on, and stay marked ready."""
        name = name_of(node)
        await self._events.normal(NODE, node, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
        for pod in list(self._on_node.get(name)):
            if is_terminal(pod):
                continue
            ready = condition_of(pod, "Ready")
            if ready is None or ready["status"] != "True":
                continue
            condition = {k: v for k, v in ready.items() if k not in ("reason", "message")} | {"status": "False"}
            made = with_condition(pod["status"]["conditions"], condition, self._wall.stamp())
            patch = {"status": {"conditions": [c for c in made if c["type"] == "Ready"]}}
            try:
                await self._kube.patch(
                    POD, name_of(pod), patch, namespace_of(pod), type=PatchType.STRATEGIC, subresource="status"
                )
            except NotFound:
                continue
            await self._events.warning(POD, pod, "NodeNotReady", "Node is not ready")

    async def _weigh_disruption(self) -> None:
        zones: dict[str, list[Json]] = defaultdict(list)
        for node in self._nodes.objects.values():
            if condition_of(node, "Ready") is not None:
                zones[zone_of(node)].append(node)
        states = {}
        for zone, nodes in zones.items():
            ready = sum(ready_status(n) == "True" for n in nodes)
            states[zone] = disruption_of(ready, len(nodes) - ready)
        all_down = bool(states) and all(s is Disruption.FULL for s in states.values())
        self._rates = {z: evictions_per_s(s, len(zones[z]), all_zones_full=all_down) for z, s in states.items()}
        if all_down and not self._all_down:
            await self._spare_all()
        elif self._all_down and not all_down:
            # Back from a total outage: nobody could be heard meanwhile, so everyone gets a fresh grace.
            now_s = asyncio.get_running_loop().time()
            for seen in self._seen.values():
                seen.at_s = now_s
        self._all_down = all_down

    async def _spare_all(self) -> None:
        self._to_taint.clear()
        for node in sorted(self._nodes.values(), key=name_of):
            taints = with_no_execute(node, None, self._wall.stamp())
            if taints is not None:
                try:
                    await self._write_taints(node, taints)
                except (ApiError, ConnectionError):
                    continue  # its pods still have their toleration's time; the next pass tries again

    async def _taint_slowly(self) -> None:
        """NoExecute taints, one node per zone at a time: a wave of them would empty the cluster."""
        while True:
            await self._line_filled.wait()
            await asyncio.sleep(self._timing.clock_s(NO_EXECUTE_PASS_S))
            for name in list(self._to_taint):
                try:
                    await self._taint_when_due(name)
                except (ApiError, ConnectionError):
                    continue  # it stays in line
            if not self._to_taint:
                self._line_filled.clear()

    async def _taint_when_due(self, name: str) -> None:
        node = self._nodes.objects.get(("", name))
        if node is None or ready_status(node) == "True":
            self._to_taint.pop(name, None)
            return
        zone, now_s = zone_of(node), asyncio.get_running_loop().time()
        per_s = self._rates.get(zone, 0.0)
        if per_s <= 0 or now_s < self._next_taint_s[zone]:
            return
        taints = with_no_execute(node, _no_execute_key(node), self._wall.stamp())
        if taints is not None:
            await self._write_taints(node, taints)
            self._next_taint_s[zone] = now_s + self._timing.clock_s(1 / per_s)
        self._to_taint.pop(name, None)


def _no_execute_key(node: Json) -> str:
    return UNREACHABLE if ready_status(node) == "Unknown" else NOT_READY


def _taints(node: Json) -> list[Json]:
    return (node.get("spec") or {}).get("taints") or []
