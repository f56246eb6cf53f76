"""Marks NodeClaims for what may be done to them: Consolidatable, Drifted; and deletes those that have expired.

Rules as of Karpenter v1.15 pkg/controllers/nodeclaim/{disruption,expiration}. A claim is consolidatable once no pod has
come to its node or left it for ``consolidateAfter``; it has drifted when its NodePool's template or requirements are no
longer those it was made from; it expires whatever budgets say.
"""

from __future__ import annotations

from datetime import UTC, datetime

from fakes.clock import WallClock, parse_stamp, stamp
from fakes.controllers.controller import Reconciler
from fakes.controllers.karpenter import api
from fakes.controllers.karpenter.nodepools import DRIFTED, HASH_ANNOTATION, Rules, duration_s
from fakes.controllers.karpenter.state import is_of_daemon_set
from fakes.controllers.karpenter.view import View
from fakes.controllers.objects import (
    condition_of,
    condition_status,
    generation_of,
    is_terminal,
    is_terminating,
    merged,
    name_of,
    node_of,
)
from fakes.timing import Timing
from harness.kube.port import NODE_CLAIM, EventType, Json, Kube, NotFound


class ClaimMarks:
    def __init__(self, kube: Kube, wall: WallClock, timing: Timing, view: View) -> None:
        self._kube = kube
        self._wall = wall
        self._timing = timing
        self._view = view
        self._work: Reconciler[str] = Reconciler(self._reconcile)
        self._pod_event_s: dict[str, float] = {}
        view.claims.on_change(self._claim_changed)
        view.pools.on_change(self._pool_changed)
        view.pods.on_change(self._pod_changed)

    async def run(self) -> None:
        for informer in self._view.informers:
            await informer.synced()
        await self._work.run()

    def _claim_changed(self, type: EventType, claim: Json, old: Json | None) -> None:
        if type is EventType.DELETED:
            self._pod_event_s.pop(name_of(claim), None)
        else:
            self._work.queue.add(name_of(claim))

    def _pool_changed(self, type: EventType, pool: Json, old: Json | None) -> None:
        if old is not None and type is EventType.MODIFIED and generation_of(pool) == generation_of(old):
            return  # only its status
        for claim in self._view.claims.objects.values():
            if api.pool_of(claim) == name_of(pool):
                self._work.queue.add(name_of(claim))

    def _pod_changed(self, type: EventType, pod: Json, old: Json | None) -> None:
        node = node_of(pod)
        if not node or is_of_daemon_set(pod):
            return
        came = old is None or node_of(old) != node
        left = type is EventType.DELETED or (
            old is not None
            and (is_terminating(pod) is not is_terminating(old) or is_terminal(pod) is not is_terminal(old))
        )
        if came or left:
            self._pod_event_s[node] = self._wall.now().timestamp()
            if condition_status(self._view.claims.objects.get(("", node)) or {}, api.CONSOLIDATABLE) is not None:
                self._work.queue.add(node)

    async def _reconcile(self, name: str) -> None:
        claim = self._view.claims.objects.get(("", name))
        if claim is None or is_terminating(claim) or condition_status(claim, api.LAUNCHED) != "True":
            return
        if await self._expire(claim):
            return
        rule = self._view.rules_of(api.pool_of(claim))
        if rule is None:
            return
        news: list[Json] = []
        cleared: list[str] = []
        drift = drift_of(claim, rule)
        if drift:
            news.append(api.condition(DRIFTED, "True", drift, drift))
        else:
            cleared.append(DRIFTED)
        wait_s = self._consolidatable_in_s(claim, rule)
        if wait_s == 0.0:
            news.append(api.condition(api.CONSOLIDATABLE, "True"))
        else:
            cleared.append(api.CONSOLIDATABLE)
            if wait_s is not None:
                self._work.queue.add_after(name, wait_s)
        await self._write(claim, news, cleared)

    async def _expire(self, claim: Json) -> bool:
        lives_s = duration_s((claim.get("spec") or {}).get("expireAfter"))
        if lives_s is None:
            return False
        age_s = (self._wall.now() - parse_stamp(claim["metadata"]["creationTimestamp"])).total_seconds()
        left_s = self._timing.clock_s(lives_s) - age_s
        if left_s > 0:
            self._work.queue.add_after(name_of(claim), left_s)
            return False
        try:
            await self._kube.delete(NODE_CLAIM, name_of(claim), uid=claim["metadata"]["uid"])
        except NotFound:
            return True
        return True

    def _consolidatable_in_s(self, claim: Json, rule: Rules) -> float | None:
        """Clock seconds; None while that is not to be foreseen."""
        initialized = condition_of(claim, api.INITIALIZED)
        if rule.consolidate_after_s is None or initialized is None or initialized["status"] != "True":
            return None
        since_s = max(
            self._pod_event_s.get(name_of(claim), 0.0), parse_stamp(initialized["lastTransitionTime"]).timestamp()
        )
        quiet_s = self._wall.now().timestamp() - since_s
        return max(0.0, self._timing.clock_s(rule.consolidate_after_s) - quiet_s)

    async def _write(self, claim: Json, news: list[Json], cleared: list[str]) -> None:
        have = {c["type"]: c for c in (claim.get("status") or {}).get("conditions") or ()}
        told = all(n["type"] in have and have[n["type"]]["status"] == n["status"] for n in news)
        if told and not any(type in have for type in cleared):
            return
        status = api.with_conditions(claim, news, self._wall.stamp(), cleared)
        if (at_s := self._pod_event_s.get(name_of(claim))) is not None:
            status["lastPodEventTime"] = stamp(datetime.fromtimestamp(at_s, UTC))
        await self._kube.update(NODE_CLAIM, merged(claim, status=status), subresource="status")


def drift_of(claim: Json, rule: Rules) -> str:
    """Why the claim is no longer what its NodePool would make; empty when it is."""
    annotations = claim["metadata"].get("annotations") or {}
    if HASH_ANNOTATION in annotations and annotations[HASH_ANNOTATION] != rule.hash:
        return "NodePoolDrifted"
    return "" if rule.takes(claim["metadata"].get("labels") or {}) else "RequirementsDrifted"
