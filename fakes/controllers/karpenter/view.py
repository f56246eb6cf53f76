"""The cluster as Karpenter's controllers share it: one cache of objects, what has been ordered and is not seen yet,
which nodes are promised to pods, and the plan that follows from it all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from fakes.cloud.cloud import Cloud
from fakes.controllers.informer import Informer
from fakes.controllers.karpenter import api
from fakes.controllers.karpenter.nodepools import UNLIMITED, Rules, rules
from fakes.controllers.karpenter.plan import Plan, Template, make_plan
from fakes.controllers.karpenter.state import bound_members, leaving_nodes, pods_needing_room, rooms
from fakes.controllers.objects import generation_of, is_terminating, name_of, namespace_of, node_of, uid_of
from fakes.controllers.resources import amounts
from fakes.nodes.labels import NODEPOOL
from fakes.timing import Timing
from harness.kube.port import NODE, NODE_CLAIM, NODE_POOL, PDB, POD, POD_GROUP, Json, Kube

NODES = "nodes"
NOMINATED_S = 20
"""Scenario seconds that a node is kept for pods that a plan has put on it: twice the longest batch."""


class View:
    """``marked`` are nodes that are about to be disrupted: no room for anything, and their pods need some elsewhere."""

    def __init__(self, kube: Kube, timing: Timing, cloud: Cloud, *, dearest_first: bool = False) -> None:
        """``dearest_first`` plants the bug of a provisioner that has its prices upside down."""
        self._price_sign = -1 if dearest_first else 1
        self.cloud = cloud
        self.pods = Informer(kube, POD)
        self.nodes = Informer(kube, NODE)
        self.claims = Informer(kube, NODE_CLAIM)
        self.groups = Informer(kube, POD_GROUP)
        self.pools = Informer(kube, NODE_POOL)
        self.budgets = Informer(kube, PDB)
        self.pods_on = self.pods.index(lambda pod: node_of(pod) or None)
        self.ordered: dict[str, Json] = {}
        self.unavailable_until_s: dict[str, float] = {}
        self.marked: set[str] = set()
        self._timing = timing
        self._nominated_until_s: dict[str, float] = {}
        self._rules: dict[str, tuple[tuple[str, int], Rules]] = {}

    @property
    def informers(self) -> tuple[Informer, ...]:
        return (self.pods, self.nodes, self.claims, self.groups, self.pools, self.budgets)

    def rules_of(self, pool: str) -> Rules | None:
        """What the NodePool says now; None when there is none of this name."""
        found = self.pools.objects.get(("", pool))
        if found is None or is_terminating(found):
            return None
        version = (uid_of(found), generation_of(found))
        if pool not in self._rules or self._rules[pool][0] != version:
            self._rules[pool] = (version, rules(found))
        return self._rules[pool][1]

    def all_claims(self) -> list[Json]:
        return [*self.claims.values(), *self.ordered.values()]

    def nominate(self, node: str) -> None:
        self._nominated_until_s[node] = _now_s() + self._timing.clock_s(NOMINATED_S)

    def is_nominated(self, node: str) -> bool:
        return self._nominated_until_s.get(node, 0.0) > _now_s()

    def plan(self, without: Iterable[str] = ()) -> Plan:
        """``without``: as if these nodes were leaving, too."""
        pods, nodes, claims = list(self.pods.values()), list(self.nodes.values()), self.all_claims()
        going = frozenset((*without, *self.marked))
        leaving = leaving_nodes(nodes, claims) | going
        capacities = {name: api.pool_capacity(pool) for name, pool in self.cloud.pools.items()}
        groups = {(namespace_of(g), name_of(g)): g for g in self.groups.values()}
        return make_plan(
            pods_needing_room(pods, leaving),
            rooms(nodes, claims, pods, capacities, going),
            self.templates(claims),
            groups,
            bound_members(pods, leaving),
        )

    def templates(self, claims: list[Json]) -> list[Template]:
        """What each NodePool may still order, offerings that proved short of capacity left out."""
        found: list[Template] = []
        for pool in sorted(name for _, name in self.pools.objects):
            rule = self.rules_of(pool)
            if rule is None:
                continue
            mine = [c for c in claims if api.pool_of(c) == pool and not is_terminating(c) and not api.lacks_capacity(c)]
            remaining = dict(rule.limits)
            for claim in mine:
                capacity = amounts(api.pool_capacity(self.cloud.pools[api.offering_of(claim)]))
                for resource in remaining:
                    remaining[resource] -= 1 if resource == NODES else capacity.get(resource, 0)
            left = remaining.pop(NODES, UNLIMITED)
            found += self._offers(rule, remaining, left)
        return found

    def _offers(self, rule: Rules, remaining: dict[str, int], left: int) -> Iterable[Template]:
        for name, offering in self.cloud.pools.items():
            labels = api.template_labels(offering)
            if not offering.provision or not rule.takes(labels):
                continue
            if self.unavailable_until_s.get(name, 0.0) > _now_s():
                continue
            meta = {"name": f"new {name}", "labels": {**rule.node_labels(labels), NODEPOOL: rule.name}}
            yield Template(
                pool=name,
                node={
                    "metadata": meta,
                    "spec": {"taints": list(rule.taints)},
                    "status": {"allocatable": api.pool_capacity(offering)},
                },
                left=left,
                weight=rule.weight,
                price=self._price_sign * offering.price_per_hour,
                nodepool=rule.name,
                remaining=remaining,
                min_values=rule.min_values,
            )


def _now_s() -> float:
    return asyncio.get_running_loop().time()
