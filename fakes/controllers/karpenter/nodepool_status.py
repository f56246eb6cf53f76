"""What a NodePool's status says: what its nodes come to, and whether it can be used.

As of Karpenter v1.15 pkg/controllers/nodepool/{counter,readiness,registrationhealth}: resources and nodes are those of
its claims that have an instance; NodeRegistrationHealthy turns False once a launched instance did not register in time.
"""

from __future__ import annotations

from fakes.clock import WallClock
from fakes.controllers.controller import Reconciler
from fakes.controllers.karpenter import api
from fakes.controllers.karpenter.view import View
from fakes.controllers.objects import condition_status, generation_of, is_terminating, merged, name_of, with_condition
from fakes.controllers.quantity import format_milli
from fakes.controllers.resources import CPU, amounts
from harness.kube.port import NODE_POOL, EventType, Json, Kube

ALWAYS = ("ValidationSucceeded", "NodeClassReady", "Ready")
HEALTHY = "NodeRegistrationHealthy"


class NodePoolStatus:
    def __init__(self, kube: Kube, wall: WallClock, view: View) -> None:
        self._kube = kube
        self._wall = wall
        self._view = view
        self._healthy: dict[str, bool] = {}
        self._work: Reconciler[str] = Reconciler(self._reconcile)
        view.pools.on_change(lambda type, new, old: self._work.queue.add(name_of(new)))
        view.claims.on_change(self._claim_changed)

    async def run(self) -> None:
        for informer in self._view.informers:
            await informer.synced()
        await self._work.run()

    def _claim_changed(self, type: EventType, claim: Json, old: Json | None) -> None:
        pool = api.pool_of(claim)
        if condition_status(claim, api.REGISTERED) == "True":
            self._healthy[pool] = True
        elif type is EventType.DELETED and condition_status(claim, api.LAUNCHED) == "True":
            self._healthy[pool] = False
        if type is not EventType.MODIFIED or _face(claim) != _face(old):
            self._work.queue.add(pool)

    async def _reconcile(self, name: str) -> None:
        pool = self._view.pools.objects.get(("", name))
        if pool is None or is_terminating(pool):
            return
        old = pool.get("status") or {}
        conditions = list(old.get("conditions") or ())
        wanted = {type: ("True", type) for type in ALWAYS} | {HEALTHY: self._registration(name)}
        for type, (status, reason) in wanted.items():
            new: Json = {"type": type, "status": status, "reason": reason, "message": ""}
            new["observedGeneration"] = generation_of(pool)
            conditions = with_condition(conditions, new, self._wall.stamp())
        total, nodes = self._total(name)
        resources = {**total, "nodes": str(nodes)}
        status_now: Json = {**old, "conditions": conditions, "resources": resources, "nodes": nodes}
        if status_now != old:
            await self._kube.update(NODE_POOL, merged(pool, status=status_now), subresource="status")

    def _registration(self, pool: str) -> tuple[str, str]:
        match self._healthy.get(pool):
            case None:
                return "Unknown", "AwaitingReconciliation"
            case True:
                return "True", HEALTHY
            case _:
                return "False", "RegistrationFailed"

    def _total(self, pool: str) -> tuple[dict[str, str], int]:
        total: dict[str, int] = {}
        nodes = 0
        for claim in self._view.claims.objects.values():
            if api.pool_of(claim) != pool or condition_status(claim, api.LAUNCHED) != "True":
                continue
            nodes += 1
            for resource, amount in amounts((claim.get("status") or {}).get("capacity")).items():
                total[resource] = total.get(resource, 0) + amount
        return {r: format_milli(a) if r == CPU else str(a) for r, a in sorted(total.items())}, nodes


def _face(claim: Json | None) -> tuple[str | None, str | None]:
    """What of a claim its pool's status shows."""
    if claim is None:
        return None, None
    return condition_status(claim, api.LAUNCHED), condition_status(claim, api.REGISTERED)
