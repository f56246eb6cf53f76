"""Takes nodes away of Karpenter's own free will: empty ones, drifted ones, and those that cheaper ones can stand for.

The loop of Karpenter v1.15 pkg/controllers/disruption: each 10 s the first method that finds something acts; what costs
pods their node is looked at again 15 s later; then taint, condition, replacements, and when those are usable the claims
are deleted, which drains the nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from fakes.clock import WallClock
from fakes.config import PlantedBug
from fakes.controllers.controller import retry_delay_s
from fakes.controllers.events import EventRecorder
from fakes.controllers.karpenter import api, consolidation
from fakes.controllers.karpenter.candidates import (
    Blocked,
    Candidate,
    disruption_cost,
    is_marked,
    node_block,
    pods_block,
    reschedulable,
)
from fakes.controllers.karpenter.consolidation import Decision
from fakes.controllers.karpenter.nodepools import DRIFTED, EMPTY, UNDERUTILIZED
from fakes.controllers.karpenter.plan import Plan
from fakes.controllers.karpenter.provisioner import Provisioner
from fakes.controllers.objects import condition_status, is_terminating, merged, name_of
from fakes.nodes.labels import CAPACITY_TYPE
from fakes.timing import Timing
from harness.kube.port import NODE, NODE_CLAIM, NODE_POOL, ApiError, Json, Kube, NotFound, Resource

T = TypeVar("T")

POLL_S = 10
VALIDATE_S = 15
REPLACEMENT_WAIT_S = 3600
SAID_AGAIN_S = 900


class Disruption:
    """``provisioner`` makes the replacements, and its view of the cluster is this controller's, too."""

    def __init__(
        self,
        kube: Kube,
        wall: WallClock,
        timing: Timing,
        provisioner: Provisioner,
        bugs: Collection[PlantedBug] = (),
    ) -> None:
        self._kube = kube
        self._wall = wall
        self._timing = timing
        self._provisioner = provisioner
        self._view = provisioner.view
        self._keeps = PlantedBug.DO_NOT_DISRUPT_IGNORED not in bugs
        self._events = EventRecorder(kube, wall, "karpenter")
        self._said_s: dict[tuple[str, str], float] = {}
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        for informer in self._view.informers:
            await informer.synced()
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            while True:
                await asyncio.sleep(self._timing.clock_s(POLL_S))
                try:
                    while await self._look():
                        await asyncio.sleep(0)
                except (ApiError, ConnectionError):
                    continue  # the next look sees what is left to do

    async def _look(self) -> bool:
        """Whether something was done, so that another look is due at once."""
        if not any(is_marked(c, t) for c in self._view.claims.objects.values() for t in (api.CONSOLIDATABLE, DRIFTED)):
            return False
        for reason in (EMPTY, DRIFTED, UNDERUTILIZED):
            decision = await self._decide(reason)
            if decision is None:
                continue
            if reason != DRIFTED:
                await asyncio.sleep(self._timing.clock_s(VALIDATE_S))
                found = consolidation.eligible(await self._candidates(reason), reason)
                if not consolidation.still_valid(decision, found, await self._allowed(reason), self._simulate):
                    continue
            await self._begin(decision)
            return True
        return False

    async def _decide(self, reason: str) -> Decision | None:
        candidates = consolidation.eligible(await self._candidates(reason), reason)
        if not candidates:
            return None
        allowed = await self._allowed(reason)
        if reason == EMPTY:
            return consolidation.empty(candidates, allowed)
        notes: list[tuple[Candidate, str]] = []
        method = consolidation.drifted if reason == DRIFTED else consolidation.underutilized
        decision = method(candidates, allowed, self._simulate, lambda c, why: notes.append((c, why)))
        for candidate, why in notes:
            said = "DisruptionBlocked" if reason == DRIFTED else "Unconsolidatable"
            await self._say(candidate.claim, candidate.node, said, why)
        return decision

    async def _candidates(self, reason: str) -> list[Candidate]:
        found: list[Candidate] = []
        now, scale = self._wall.now(), self._timing.time_scale
        for claim in list(self._view.claims.objects.values()):
            name, rule = name_of(claim), self._view.rules_of(api.pool_of(claim))
            if rule is None or not is_marked(claim, DRIFTED if reason == DRIFTED else api.CONSOLIDATABLE):
                continue
            node = self._view.nodes.objects.get(("", name))
            nominated, marked = self._view.is_nominated(name), name in self._view.marked
            blocked = node_block(claim, node, nominated=nominated, marked=marked)
            pods = list(self._view.pods_on.get(name))
            if blocked is None:
                blocked = pods_block(pods, self._view.budgets.objects.values(), now, scale, keeps=self._keeps)
                if blocked is not None and reason == DRIFTED and claim["spec"].get("terminationGracePeriod"):
                    blocked = None
            if blocked is not None or node is None:
                await self._say_blocked(claim, node, blocked)
                continue
            offering, moved = self._view.cloud.pools.get(api.offering_of(claim)), reschedulable(pods)
            found.append(
                Candidate(
                    node=node,
                    claim=claim,
                    rules=rule,
                    pods=moved,
                    price=offering.price_per_hour if offering is not None else 0.0,
                    spot=(node["metadata"].get("labels") or {}).get(CAPACITY_TYPE) == "spot",
                    cost=disruption_cost(moved),
                )
            )
        return found

    async def _allowed(self, reason: str) -> dict[str, int]:
        """By NodePool, how many more nodes may be disrupted for this reason. Nodes that are leaving or are not Ready
        have been taken off already."""
        nodes: dict[str, int] = {}
        away: dict[str, int] = {}
        for claim in self._view.claims.objects.values():
            if not api.is_initialized(claim):
                continue
            pool, name = api.pool_of(claim), name_of(claim)
            nodes[pool] = nodes.get(pool, 0) + 1
            node = self._view.nodes.objects.get(("", name))
            if (
                is_terminating(claim)
                or name in self._view.marked
                or node is None
                or is_terminating(node)
                or condition_status(node, "Ready") != "True"
            ):
                away[pool] = away.get(pool, 0) + 1
        allowed: dict[str, int] = {}
        for _, pool in list(self._view.pools.objects):
            rule = self._view.rules_of(pool)
            most = rule.allowed(nodes.get(pool, 0), reason, self._wall.now()) if rule is not None else 0
            allowed[pool] = max(0, most - away.get(pool, 0))
            if nodes.get(pool) and most == 0:
                why = f"No allowed disruptions for disruption reason {reason} due to blocking budget"
                await self._say_of(NODE_POOL, self._view.pools.objects[("", pool)], "DisruptionBlocked", why, 60)
        return allowed

    def _simulate(self, candidates: Sequence[Candidate]) -> Plan:
        plan = self._view.plan(c.name for c in candidates)
        soon = {n for _, n in self._view.claims.objects if not api.is_initialized(self._view.claims.objects[("", n)])}
        soon |= set(self._view.ordered)
        waiting = tuple(pod for pod, node in plan.placed if node in soon)
        return replace(plan, unplaced=(*plan.unplaced, *waiting))

    # What was decided is done.

    async def _begin(self, decision: Decision) -> None:
        assert self._tasks is not None
        self._view.marked |= decision.names
        self._tasks.create_task(self._carry_out(decision))

    async def _carry_out(self, decision: Decision) -> None:
        """A decision whose replacements fail is taken back."""
        try:
            await self._patiently(partial(self._mark, decision, on=True))
            if await self._replacements_ready(decision):
                for candidate in decision.candidates:
                    for resource, obj in ((NODE, candidate.node), (NODE_CLAIM, candidate.claim)):
                        said = f"Disrupting {resource.kind}: {decision.reason}"
                        await self._events.normal(resource, obj, "DisruptionTerminating", said)
                    await self._patiently(partial(self._delete, candidate.name))
            else:
                await self._patiently(partial(self._mark, decision, on=False))
        finally:
            self._view.marked -= decision.names

    async def _replacements_ready(self, decision: Decision) -> bool:
        made: list[Json] = []
        for new in decision.new:
            made.append(await self._patiently(partial(self._provisioner.order, new)))
            said = f"Launching NodeClaim: {decision.reason}"
            await self._events.normal(NODE_CLAIM, made[-1], "DisruptionLaunching", said)
        end_s = asyncio.get_running_loop().time() + self._timing.clock_s(REPLACEMENT_WAIT_S)
        for claim in made:
            name = name_of(claim)
            while not api.is_initialized(found := self._view.claims.objects.get(("", name)) or claim):
                gone = ("", name) not in self._view.claims.objects and name not in self._view.ordered
                if gone or is_terminating(found) or asyncio.get_running_loop().time() > end_s:
                    return False
                why = "Waiting on readiness to continue disruption"
                await self._say_of(NODE_CLAIM, found, "DisruptionWaitingReadiness", why, SAID_AGAIN_S)
                await asyncio.sleep(self._timing.clock_s(1))
        return True

    async def _mark(self, decision: Decision, *, on: bool) -> None:
        for candidate in decision.candidates:
            await self._taint(candidate.name, on=on)
            claim = self._view.claims.objects.get(("", candidate.name))
            if claim is None or is_terminating(claim):
                continue
            reason = decision.reason
            news = [api.condition(api.DISRUPTION_REASON, "True", reason, reason)] if on else []
            cleared = () if on else (api.DISRUPTION_REASON,)
            status = api.with_conditions(claim, news, self._wall.stamp(), cleared)
            await self._kube.update(NODE_CLAIM, merged(claim, status=status), subresource="status")

    async def _taint(self, name: str, *, on: bool) -> None:
        node = self._view.nodes.objects.get(("", name))
        if node is None or is_terminating(node):
            return
        taints = (node.get("spec") or {}).get("taints") or []
        kept = [t for t in taints if t["key"] != api.DISRUPTED_TAINT["key"]]
        if on is (len(kept) < len(taints)):
            return
        spec = {**(node.get("spec") or {}), "taints": [*kept, api.DISRUPTED_TAINT] if on else kept}
        await self._kube.update(NODE, merged(node, spec=spec))

    async def _delete(self, name: str) -> None:
        try:
            await self._kube.delete(NODE_CLAIM, name)
        except NotFound:
            return

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        failures = 0
        while True:
            try:
                return await call()
            except (ApiError, ConnectionError):
                await asyncio.sleep(retry_delay_s(failures))
                failures += 1

    # Events.

    async def _say_blocked(self, claim: Json, node: Json | None, blocked: Blocked | None) -> None:
        if blocked is not None and blocked.said:
            await self._say(claim, node, "DisruptionBlocked", blocked.said)

    async def _say(self, claim: Json, node: Json | None, reason: str, said: str) -> None:
        await self._say_of(NODE_CLAIM, claim, reason, said, SAID_AGAIN_S)
        if node is not None:
            await self._say_of(NODE, node, reason, said, SAID_AGAIN_S)

    async def _say_of(self, resource: Resource, obj: Json, reason: str, said: str, again_s: float) -> None:
        key, now_s = (obj["metadata"]["uid"], f"{reason} {said}"), asyncio.get_running_loop().time()
        if now_s - self._said_s.get(key, -1e9) >= self._timing.clock_s(again_s):
            self._said_s[key] = now_s
            await self._events.normal(resource, obj, reason, said)
