"""Making room for a pod by evicting pods of lower priority. Pure.

After kubernetes v1.37 pkg/scheduler/framework/{preemption,plugins/defaultpreemption}: on each node that could help, as
many of the lower pods as possible are spared, those that a budget protects first; then the node is taken that costs
least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fakes.controllers.cluster import Cluster
from fakes.controllers.objects import is_terminating, name_of, namespace_of
from fakes.controllers.placement import HOPELESS, NOBODY, Refusal, histogram
from fakes.kube.selectors import match_label_selector
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


def priority_of(pod: Json) -> int:
    return int(pod["spec"].get("priority") or 0)


def plan_preemption(
    cluster: Cluster, pod: Json, refusals: Mapping[str, Refusal], budgets: Sequence[Json]
) -> Plan | str:
    """A plan, or the sentence that says why there is none."""
    if (pod["spec"].get("preemptionPolicy") or "PreemptLowerPriority") == "Never":
        return NEVER
    nominated = (pod.get("status") or {}).get("nominatedNodeName")
    if nominated and any(is_terminating(p) and priority_of(p) < priority_of(pod) for p in cluster.pods_on(nominated)):
        return STILL_LEAVING
    plans: list[Plan] = []
    reasons: list[str] = []
    for name, refusal in refusals.items():
        if refusal.final:
            reasons.append(HOPELESS)
            continue
        found = _victims_on(cluster, pod, name, budgets)
        if isinstance(found, Plan):
            plans.append(found)
        else:
            reasons += found
    if plans:
        return min(plans, key=_price)
    return f"0/{len(refusals)} nodes are available: {histogram(reasons)}."


def _victims_on(cluster: Cluster, pod: Json, node: str, budgets: Sequence[Json]) -> Plan | Sequence[str]:
    lower = sorted((p for p in cluster.pods_on(node) if priority_of(p) < priority_of(pod)), key=importance)
    if not lower:
        return [NOBODY]
    gone = {id(p) for p in lower}
    if (why := cluster.refuse_without(pod, node, gone)) is not None:
        return why.reasons
    protected, free = _by_protection(lower, budgets)
    victims: list[Json] = []
    violations = 0
    for group in (protected, free):
        for candidate in group:
            gone.discard(id(candidate))
            if cluster.refuse_without(pod, node, gone) is not None:
                gone.add(id(candidate))
                victims.append(candidate)
                violations += group is protected
    return Plan(node, tuple(sorted(victims, key=importance)), violations)


def importance(pod: Json) -> tuple[int, str, str]:
    """The most important sorts first: high priority, then long at work."""
    return -priority_of(pod), _began(pod), name_of(pod)


def _began(pod: Json) -> str:
    return str((pod.get("status") or {}).get("startTime") or pod["metadata"].get("creationTimestamp") or "")


def _by_protection(pods: Sequence[Json], budgets: Sequence[Json]) -> tuple[list[Json], list[Json]]:
    """Pods whose eviction would overdraw a budget, and the others, in their order."""
    left = {id(b): int((b.get("status") or {}).get("disruptionsAllowed") or 0) for b in budgets}
    protected: list[Json] = []
    free: list[Json] = []
    for pod in pods:
        overdrawn = False
        for budget in budgets:
            if not _covers(budget, pod):
                continue
            left[id(budget)] -= 1
            overdrawn = overdrawn or left[id(budget)] < 0
        (protected if overdrawn else free).append(pod)
    return protected, free


def _covers(budget: Json, pod: Json) -> bool:
    noted = (budget.get("status") or {}).get("disruptedPods") or {}
    return (
        namespace_of(budget) == namespace_of(pod)
        and name_of(pod) not in noted
        and match_label_selector((budget.get("spec") or {}).get("selector"), pod["metadata"].get("labels") or {})
    )


def _price(plan: Plan) -> tuple[object, ...]:
    """Fewest broken budgets, lowest of the highest priorities, lowest sum, fewest victims, then the one whose most
    important victims began last."""
    priorities = [priority_of(v) for v in plan.victims]
    highest = max(priorities, default=0)
    first = min((_began(v) for v in plan.victims if priority_of(v) == highest), default="")
    # A priority may be negative; Kubernetes shifts all of them up, so that more victims never cost less.
    total = sum(p + 2**31 for p in priorities)
    return plan.violations, highest, total, len(plan.victims), _descending(first), plan.node


def _descending(text: str) -> tuple[int, ...]:
    """A key by which the later of two equally long stamps sorts first."""
    return tuple(-ord(c) for c in text)
