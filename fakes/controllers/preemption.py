"""Making room for a pod by evicting pods of lower priority. Pure.

After kubernetes v1.37 pkg/scheduler/framework/{preemption,plugins/defaultpreemption}: on each node that could help, as
many of the lower pods as possible are spared, those that a budget protects first; then the node is taken that costs
least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fakes.controllers.cluster import Cluster
from fakes.controllers.informer import Key
from fakes.controllers.objects import is_terminating
from fakes.controllers.placement import HOPELESS, NOBODY, Refusal, histogram
from fakes.controllers.victims import Unit, Units, began, by_protection, priority_of
from harness.kube.port import Json

NEVER = "not eligible due to preemptionPolicy=Never."
STILL_LEAVING = "not eligible due to a terminating pod on the nominated node."


@dataclass(frozen=True, slots=True)
class Plan:
    """``victims`` on ``node``, the most important first."""

    node: str
    victims: tuple[Json, ...]
    violations: int

    @property
    def sentence(self) -> str:
        count = len(self.victims)
        return f"found a potential placement for pod on node {self.node}, preempting {count} victims"


def plan_preemption(
    cluster: Cluster,
    pod: Json,
    refusals: Mapping[str, Refusal],
    budgets: Sequence[Json],
    groups: Mapping[Key, Json] | None = None,
) -> Plan | str:
    """A plan, or the sentence that says why there is none. ``groups`` are the PodGroups of the cluster."""
    if (pod["spec"].get("preemptionPolicy") or "PreemptLowerPriority") == "Never":
        return NEVER
    nominated = (pod.get("status") or {}).get("nominatedNodeName")
    if nominated and any(is_terminating(p) and priority_of(p) < priority_of(pod) for p in cluster.pods_on(nominated)):
        return STILL_LEAVING
    units = Units(cluster, groups or {})
    plans: list[Plan] = []
    reasons: list[str] = []
    for name, refusal in refusals.items():
        if refusal.final:
            reasons.append(HOPELESS)
            continue
        found = _victims_on(cluster, pod, name, units, budgets)
        if isinstance(found, Plan):
            plans.append(found)
        else:
            reasons += found
    if plans:
        return min(plans, key=_price)
    return f"0/{len(refusals)} nodes are available: {histogram(reasons)}."


def _victims_on(cluster: Cluster, pod: Json, node: str, units: Units, budgets: Sequence[Json]) -> Plan | Sequence[str]:
    lower = units.of(cluster.pods_on(node), priority_of(pod))
    if not lower:
        return [NOBODY]
    gone = {id(p) for unit in lower for p in unit.pods}
    if (why := cluster.refuse_without(pod, node, gone)) is not None:
        return why.reasons
    protected, free = by_protection(lower, budgets)
    victims: list[Unit] = []
    violations = 0
    for unit, overdrawn in (*protected, *((unit, 0) for unit in free)):
        back = {id(p) for p in unit.pods}
        gone -= back
        if cluster.refuse_without(pod, node, gone) is not None:
            gone |= back
            victims.append(unit)
            violations += overdrawn
    victims.sort(key=lambda unit: unit.importance)
    return Plan(node, tuple(p for unit in victims for p in unit.pods), violations)


def _price(plan: Plan) -> tuple[object, ...]:
    """Fewest broken budgets, lowest of the highest priorities, lowest sum, fewest victims, then the one whose most
    important victims began last."""
    priorities = [priority_of(v) for v in plan.victims]
    highest = max(priorities, default=0)
    first = min((began(v) for v in plan.victims if priority_of(v) == highest), default="")
    # A priority may be negative; Kubernetes shifts all of them up, so that more victims never cost less.
    total = sum(p + 2**31 for p in priorities)
    return plan.violations, highest, total, len(plan.victims), _descending(first), plan.node


def _descending(text: str) -> tuple[int, ...]:
    """A key by which the later of two equally long stamps sorts first."""
    return tuple(-ord(c) for c in text)
