"""Native gangs: the pods of a PodGroup are placed together, at least ``minCount`` of them, or none. Pure.

A gang that cannot be placed holds nothing: every trial placement is taken back before the next pod is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fakes.controllers.cluster import Cluster
from fakes.controllers.objects import condition_status, with_condition
from fakes.controllers.placement import Refusal, explain
from harness.kube.port import Json

CONDITION = "PodGroupInitiallyScheduled"
RESOLVABLE = "deallocation and deletion of ResourceClaims completed"
"""What the plugin that comes before preemption says wherever preemption did not settle the matter."""


@dataclass(frozen=True, slots=True)
class GangPlan:
    """``placed`` are pods with their nodes, in the order to bind; ``refused`` pods with the sentence for each."""

    placed: tuple[tuple[Json, str], ...] = ()
    waited: int = 0
    """How many of the placed ones had to wait for the others: those before the minimum was reached."""
    refused: tuple[tuple[Json, str], ...] = ()
    message: str = ""
    """Why the group as a whole waits; empty when it is placed."""
    reason: str = "Unschedulable"
    nominated: tuple[tuple[Json, str], ...] = ()
    """Where members will go once room is made."""


@dataclass(slots=True)
class _Trial:
    placed: list[tuple[Json, str]] = field(default_factory=list)
    refused: list[tuple[Json, Mapping[str, Refusal]]] = field(default_factory=list)


def group_name(pod: Json) -> str | None:
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return str(name) if name else None


def min_count(group: Json) -> int:
    """A group without a gang policy (``basic``) asks for no more than one."""
    gang = ((group.get("spec") or {}).get("schedulingPolicy") or {}).get("gang") or {}
    return int(gang.get("minCount") or 1)


def is_complete(group: Json | None, members: int) -> bool:
    """Whether the gang is tried at all: its PodGroup is there, and enough pods for it (bound ones included). Of one
    that is not, nothing is said anywhere, as in the original."""
    return group is not None and members >= min_count(group)


@dataclass(frozen=True, slots=True)
class GangRefused:
    """A gang that cannot be placed now. ``own``: what is to be said of members that were tried, by id; ``fitted`` those
    that would have had a place."""

    pending: tuple[Json, ...]
    short: str
    own: Mapping[int, str]
    fitted: tuple[Json, ...]

    def told(self, preemption: str, *, waiting: bool = False) -> GangPlan:
        """Who fitted, who did not, and who was not tried any more each have a sentence of their own. ``preemption``:
        what came of making room; ``waiting``: room is being made."""
        message = f"{self.short}, {preemption}"
        fitted = message if waiting else f"pod group is unschedulable, {message}"
        said = {**self.own, **{id(pod): fitted for pod in self.fitted}}
        return GangPlan(refused=tuple((pod, said.get(id(pod), self.short)) for pod in self.pending), message=message)


def plan_gang(cluster: Cluster, group: Json, pending: Sequence[Json], bound: int) -> GangPlan | GangRefused:
    """Tries ``pending`` one after the other on ``cluster``; on success their placements stay in it.

    ``bound`` are members that have a node and are not on their way out. With ``bound`` at or above the minimum every
    further member stands for itself.
    """
    needed = min_count(group)
    trial = _Trial()
    for index, pod in enumerate(pending):
        choice = cluster.choose(pod)
        if isinstance(choice, str):
            cluster.place(pod, choice)
            trial.placed.append((pod, choice))
        else:
            trial.refused.append((pod, choice))
        scheduled, remaining = bound + len(trial.placed), len(pending) - index - 1
        if scheduled + remaining < needed:
            for placed, node in trial.placed:
                cluster.take_back(placed, node)
            short = f"minCount ({needed}) cannot be satisfied: {scheduled} scheduled, {remaining} remaining"
            own = {id(refused): explain(refusals) for refused, refusals in trial.refused}
            return GangRefused(tuple(pending), short, own, tuple(placed for placed, _ in trial.placed))
    refused = tuple((pod, explain(refusals)) for pod, refusals in trial.refused)
    return GangPlan(tuple(trial.placed), max(0, needed - bound - 1), refused)


def refused_group(group: Json, pending: Sequence[Json]) -> GangPlan | None:
    """A group whose pods are of another priority than itself is an error, and is not tried."""
    wanted = int((group.get("spec") or {}).get("priority") or 0)
    other = next((p for p in pending if int(p["spec"].get("priority") or 0) != wanted), None)
    if other is None:
        return None
    got = int(other["spec"].get("priority") or 0)
    message = (
        f"all pods in a single pod group should have the same priority as the pod group's priority, got {got} and "
    )
    message += str(wanted)
    return GangPlan(refused=tuple((pod, message) for pod in pending), message=message, reason="SchedulerError")


def group_status(group: Json, plan: GangPlan, stamp: str) -> Json | None:
    """The PodGroup's next status, or None when it stays. True is for ever, even when members are lost."""
    if condition_status(group, CONDITION) == "True":
        return None
    condition: Json = {"type": CONDITION, "status": "True", "reason": "Scheduled", "message": plan.message}
    if plan.message:
        condition |= {"status": "False", "reason": plan.reason}
    condition["observedGeneration"] = int(group["metadata"].get("generation") or 1)
    old = group.get("status") or {}
    new = {**old, "conditions": with_condition(old.get("conditions"), condition, stamp)}
    return None if new == old else new
