"""Making room for a gang: the domain is the whole cluster, and what leaves are units of lower priority. Pure.

After kubernetes v1.37 pkg/scheduler/framework/preemption/podgrouppreemption.go: all lower units are thought away, the
gang is placed, and then as many of them as possible come back, those that a budget protects first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fakes.controllers.cluster import Cluster
from fakes.controllers.gang import GangRefused, plan_gang
from fakes.controllers.informer import Key
from fakes.controllers.objects import is_terminating, node_of
from fakes.controllers.victims import Unit, Units, by_protection, group_priority, is_preempted, priority_of
from harness.kube.port import Json

NO_VICTIMS = "No preemption victims found for incoming preemptor"
ONGOING = "ongoing preemption on nominated nodes"
NEVER = "not eligible due to preemptionPolicy=Never."


@dataclass(frozen=True, slots=True)
class GangRoom:
    """``placed``: where the members will go once ``victims`` (the most important first) are gone. No victims: those
    of an earlier plan, ``leaving``, are still on their way."""

    placed: tuple[tuple[Json, str], ...]
    victims: tuple[Json, ...] = ()
    leaving: tuple[Json, ...] = ()

    @property
    def sentence(self) -> str:
        if not self.victims:
            return ONGOING
        return f"found a placement for podgroup, preempting {len(self.victims)} victims"


def plan_gang_preemption(
    cluster: Cluster,
    group: Json,
    pending: Sequence[Json],
    bound: int,
    groups: Mapping[Key, Json],
    budgets: Sequence[Json],
) -> GangRoom | str:
    """A plan, or the sentence that says why there is none. ``cluster`` is left as it was."""
    if any(p["spec"].get("preemptionPolicy") == "Never" for p in pending):
        return NEVER
    priority = group_priority(group)
    nominated = [(p, str(n)) for p in pending if (n := (p.get("status") or {}).get("nominatedNodeName"))]
    near = [p for node in {node: None for _, node in nominated} for p in cluster.pods_on(node)]
    if leaving := [p for p in near if is_terminating(p) and is_preempted(p) and priority_of(p) < priority]:
        return GangRoom(tuple(nominated), leaving=tuple(leaving))
    there = [pod for node in cluster.rooms for pod in cluster.pods_on(node)]
    lower = Units(cluster, groups).of(there, priority)
    if not lower:
        return NO_VICTIMS
    where = {id(pod): node_of(pod) for unit in lower for pod in unit.pods}
    for unit in lower:
        _take_away(cluster, unit, where)
    plan = plan_gang(cluster, group, pending, bound)
    if isinstance(plan, GangRefused):
        for unit in lower:
            _give_back(cluster, unit, where)
        return plan.short
    victims = _not_spared(cluster, lower, plan.placed, where, budgets)
    for pod, node in plan.placed:
        cluster.take_back(pod, node)
    for unit in victims:
        _give_back(cluster, unit, where)
    return GangRoom(plan.placed, tuple(pod for unit in victims for pod in unit.pods))


def _not_spared(
    cluster: Cluster,
    lower: Sequence[Unit],
    placed: Sequence[tuple[Json, str]],
    where: Mapping[int, str],
    budgets: Sequence[Json],
) -> list[Unit]:
    """Units that cannot come back beside the gang; the others are back in the cluster."""
    protected, free = by_protection(lower, budgets)
    victims: list[Unit] = []
    for unit in (*(unit for unit, _ in protected), *free):
        for pod, node in placed:
            cluster.take_back(pod, node)
        _give_back(cluster, unit, where)
        fits = True
        for pod, node in placed:
            fits = fits and cluster.refuse_without(pod, node, ()) is None
            cluster.place(pod, node)
        if not fits:
            _take_away(cluster, unit, where)
            victims.append(unit)
    return sorted(victims, key=lambda unit: unit.importance)


def _take_away(cluster: Cluster, unit: Unit, where: Mapping[int, str]) -> None:
    for pod in unit.pods:
        cluster.take_back(pod, where[id(pod)])


def _give_back(cluster: Cluster, unit: Unit, where: Mapping[int, str]) -> None:
    for pod in unit.pods:
        cluster.place(pod, where[id(pod)])
