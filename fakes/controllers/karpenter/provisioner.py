"""Decides which nodes are missing, and orders them as NodeClaims."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress

from fakes.clock import WallClock
from fakes.cloud.cloud import Cloud, Instance
from fakes.config import PlantedBug, PoolConfig
from fakes.controllers.controller import run_controller
from fakes.controllers.events import EventRecorder
from fakes.controllers.karpenter import api
from fakes.controllers.karpenter.plan import NewNode
from fakes.controllers.karpenter.state import is_provisionable
from fakes.controllers.karpenter.view import View
from fakes.controllers.objects import is_terminating, name_of, uid_of
from fakes.controllers.quantity import format_milli
from fakes.controllers.resources import CPU, PODS, requested
from fakes.timing import Timing
from harness.kube.port import NODE_CLAIM, NODE_POOL, POD, AlreadyExists, ApiError, EventType, Json, Kube

UNAVAILABLE_S = 180
"""How long an offering that proved short of capacity, or was interrupted, is passed over."""
ASK_AGAIN_S = 10
NOMINATED_AGAIN_S = 120
RETRY_S = 0.5
TOO_MANY = 3
"""Nodes ordered in the place of one, under the planted bug."""


class Provisioner:
    """Pods that the scheduler cannot place are gathered for a moment (idle 1 s, at most 10 s) and planned together.

    What it has ordered counts as room from that moment on, so pods wait for a node under way and never get a second.
    Whether the cloud has a node left it learns as Karpenter does: from a claim that fails to launch.
    """

    def __init__(
        self, kube: Kube, wall: WallClock, timing: Timing, cloud: Cloud, bugs: Collection[PlantedBug] = ()
    ) -> None:
        self._bugs = frozenset(bugs)
        self.view = View(kube, timing, cloud, dearest_first=PlantedBug.PROVISIONER_IGNORES_PRICE in bugs)
        """Shared with the controllers that take nodes away."""
        self._kube = kube
        self._timing = timing
        self._cloud = cloud
        self._nominated_s: dict[tuple[str, str], float] = {}
        self._events = EventRecorder(kube, wall, "karpenter")
        self._asked = asyncio.Event()
        self.view.pods.on_change(self._pod_changed)
        self.view.claims.on_change(self._claim_changed)
        cloud.on_notice.append(self._noticed)

    async def run(self) -> None:
        by_pool: dict[str, list[PoolConfig]] = {}
        for pool in self._cloud.pools.values():
            if pool.provision:
                by_pool.setdefault(pool.node_pool, []).append(pool)
        for name, pools in by_pool.items():
            with suppress(AlreadyExists):
                await self._kube.create(NODE_POOL, api.node_pool(name, pools))
        await run_controller(self.view.informers, self._provision_for_ever, self._keep_asking)

    def _pod_changed(self, type: EventType, pod: Json, old: Json | None) -> None:
        if type is EventType.DELETED:
            self._nominated_s = {k: s for k, s in self._nominated_s.items() if k[0] != uid_of(pod)}
        elif is_provisionable(pod) and (old is None or not is_provisionable(old)):
            self._asked.set()

    def _claim_changed(self, type: EventType, claim: Json, old: Json | None) -> None:
        self.view.ordered.pop(name_of(claim), None)
        if api.lacks_capacity(claim):
            self._pass_over(api.offering_of(claim))
        if type is EventType.DELETED or (is_terminating(claim) and (old is None or not is_terminating(old))):
            self._asked.set()

    def _noticed(self, instance: Instance) -> None:
        self._pass_over(instance.pool.name)

    def _pass_over(self, pool: str) -> None:
        self.view.unavailable_until_s[pool] = _now_s() + self._timing.clock_s(UNAVAILABLE_S)

    async def _keep_asking(self) -> None:
        while True:
            await asyncio.sleep(self._timing.clock_s(ASK_AGAIN_S))
            if any(is_provisionable(pod) for pod in self.view.pods.objects.values()):
                self._asked.set()

    async def _provision_for_ever(self) -> None:
        while True:
            await self._asked.wait()
            await self._gather()
            try:
                await self._provision()
            except (ApiError, ConnectionError):
                await asyncio.sleep(RETRY_S)
                self._asked.set()

    async def _gather(self) -> None:
        """Until nobody has asked for a moment, but not for ever."""
        durations = self._timing.durations
        end_s = _now_s() + self._timing.clock_s(durations.provisioner_batch_max_s)
        while self._asked.is_set() and _now_s() < end_s:
            self._asked.clear()
            idle_s = min(self._timing.clock_s(durations.provisioner_batch_idle_s), end_s - _now_s())
            try:
                async with asyncio.timeout(idle_s):
                    await self._asked.wait()
            except TimeoutError:
                break
        self._asked.clear()

    async def _provision(self) -> None:
        plan = self.view.plan()
        for pod, node in plan.placed:
            await self._nominate(pod, node)
        for new in self._misled(plan.new):
            await self.order(new)
        for pod in plan.unplaced:
            if is_provisionable(pod):
                await self._say_unplaced(pod)

    def _misled(self, new: tuple[NewNode, ...]) -> tuple[NewNode, ...]:
        """What planted bugs make of the nodes that are missing."""
        if PlantedBug.PROVISIONER_IDLE in self._bugs:
            return ()
        if PlantedBug.PROVISIONER_ORDERS_TOO_MANY in self._bugs:
            return tuple(node for node in new for _ in range(TOO_MANY))
        return new

    async def order(self, new: NewNode) -> Json:
        """The NodeClaim of a planned node, made."""
        nodepool = new.options[0].owner
        rules = self.view.rules_of(nodepool)
        claim = api.node_claim(
            self._cloud.pools[new.pool],
            self._cloud.next_name(new.pool),
            total_requests(new.pods),
            self.view.pools.objects.get(("", nodepool)),
            rules,
        )
        made = await self._kube.create(NODE_CLAIM, claim)
        if ("", name_of(made)) not in self.view.claims.objects:
            self.view.ordered[name_of(made)] = made
        for pod in new.pods:
            await self._nominate(pod, name_of(made))
        return made

    async def _nominate(self, pod: Json, node: str) -> None:
        if not is_provisionable(pod):
            return  # it still runs, on a node that is leaving
        self.view.nominate(node)
        claim = f"nodeclaim/{node}" if ("", node) in self.view.claims.objects or node in self.view.ordered else ""
        there = f"node/{node}" if ("", node) in self.view.nodes.objects else ""
        message = f"Pod should schedule on: {', '.join(part for part in (claim, there) if part)}"
        key = (uid_of(pod), message)
        if _now_s() - self._nominated_s.get(key, -1e9) < self._timing.clock_s(NOMINATED_AGAIN_S):
            return
        self._nominated_s[key] = _now_s()
        await self._events.normal(POD, pod, "Nominated", message)

    async def _say_unplaced(self, pod: Json) -> None:
        key = (uid_of(pod), "FailedScheduling")
        if _now_s() - self._nominated_s.get(key, -1e9) < self._timing.clock_s(NOMINATED_AGAIN_S):
            return
        self._nominated_s[key] = _now_s()
        pools = ", ".join(f'"{name}"' for _, name in sorted(self.view.pools.objects)) or "none"
        why = f"Failed to schedule pod, no nodepool has a node for it within its limits; nodepools: {pools}"
        await self._events.warning(POD, pod, "FailedScheduling", why)


def total_requests(pods: tuple[Json, ...]) -> Json:
    """As quantities, the way a NodeClaim's ``spec.resources.requests`` lists them."""
    total: dict[str, int] = {}
    for pod in pods:
        for resource, amount in requested(pod).items():
            total[resource] = total.get(resource, 0) + amount
    quantities = {r: format_milli(a) if r == CPU else str(a) for r, a in sorted(total.items())}
    return {**quantities, PODS: str(len(pods))}


def _now_s() -> float:
    return asyncio.get_running_loop().time()
