"""What may have to leave for something more important: pods, and gangs that leave as one. Pure.

After kubernetes v1.37 pkg/scheduler/framework/preemption/{types,util}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fakes.controllers.cluster import Cluster
from fakes.controllers.gang import group_name
from fakes.controllers.informer import Key
from fakes.controllers.objects import name_of, namespace_of
from fakes.kube.selectors import match_label_selector
from harness.kube.port import Json

REASON = "PreemptionByScheduler"


@dataclass(frozen=True, slots=True)
class Unit:
    """Pods that leave together: one, or all of a gang whose ``disruptionMode`` is ``all``. A member of a gang counts by
    the priority of its PodGroup."""

    pods: tuple[Json, ...]
    priority: int
    of_gang: bool

    @property
    def importance(self) -> tuple[int, bool, int, str, str]:
        """The most important sorts first: high priority, then gangs, the larger ones, and who has long been at work."""
        return -self.priority, not self.of_gang, -len(self.pods), min(map(began, self.pods)), name_of(self.pods[0])


class Units:
    """Of a cluster as it is now. ``groups`` are its PodGroups."""

    def __init__(self, cluster: Cluster, groups: Mapping[Key, Json]) -> None:
        self._groups = groups
        self._whole: dict[Key, list[Json]] = {k: [] for k, g in groups.items() if _leaves_as_one(g)}
        if self._whole:
            for node in cluster.rooms:
                for pod in cluster.pods_on(node):
                    if (members := self._whole.get(_gang(pod))) is not None:
                        members.append(pod)

    def of(self, pods: Iterable[Json], below: int) -> list[Unit]:
        """The units with a pod among ``pods`` that are of a lower priority than ``below``, the most important first."""
        found: dict[object, Unit] = {}
        for pod in pods:
            key = _gang(pod)
            group = self._groups.get(key)
            priority = priority_of(pod) if group is None else group_priority(group)
            if priority >= below:
                continue
            members = self._whole.get(key)
            if members is None:
                found[id(pod)] = Unit((pod,), priority, bool(key[1]))
            elif key not in found:
                found[key] = Unit(tuple(members), priority, True)
        return sorted(found.values(), key=lambda unit: unit.importance)


def _leaves_as_one(group: Json) -> bool:
    return "all" in ((group.get("spec") or {}).get("disruptionMode") or {})


def _gang(pod: Json) -> Key:
    """Of a pod without a gang a key that no PodGroup has."""
    return namespace_of(pod), group_name(pod) or ""


def priority_of(pod: Json) -> int:
    return int(pod["spec"].get("priority") or 0)


def group_priority(group: Json) -> int:
    return int((group.get("spec") or {}).get("priority") or 0)


def began(pod: Json) -> str:
    return str((pod.get("status") or {}).get("startTime") or pod["metadata"].get("creationTimestamp") or "")


def is_preempted(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "DisruptionTarget" and c.get("reason") == REASON for c in conditions)


def by_protection(units: Sequence[Unit], budgets: Sequence[Json]) -> tuple[list[tuple[Unit, int]], list[Unit]]:
    """Units that hold pods whose eviction would overdraw a budget, with the number of these, and the other units; both
    in their order."""
    left = {id(b): int((b.get("status") or {}).get("disruptionsAllowed") or 0) for b in budgets}
    protected: list[tuple[Unit, int]] = []
    free: list[Unit] = []
    for unit in units:
        overdrawn = 0
        for pod in unit.pods:
            covering = [b for b in budgets if _covers(b, pod)]
            for budget in covering:
                left[id(budget)] -= 1
            overdrawn += any(left[id(b)] < 0 for b in covering)
        if overdrawn:
            protected.append((unit, overdrawn))
        else:
            free.append(unit)
    return protected, free


def _covers(budget: Json, pod: Json) -> bool:
    noted = (budget.get("status") or {}).get("disruptedPods") or {}
    return (
        namespace_of(budget) == namespace_of(pod)
        and name_of(pod) not in noted
        and match_label_selector((budget.get("spec") or {}).get("selector"), pod["metadata"].get("labels") or {})
    )
