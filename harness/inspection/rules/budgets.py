"""PodDisruptionBudgets: those that block, those that protect nobody, and those that are two."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.inspection.objects import Objects, target_name
from harness.inspection.rule import Rule, Severity, Sighting
from harness.inspection.seen import Seen, dig, text, whole
from harness.inspection.workloads import Workload

_LOOKS_AT = ("PodDisruptionBudget",)


def floor_of(objects: Objects, workload: Workload) -> tuple[int, str]:
    """The fewest pods that it has by design, and who says so."""
    for scaler, keys in (("HorizontalPodAutoscaler", "minReplicas"), ("ScaledObject", "minReplicaCount")):
        for seen in objects.around(objects.of(scaler), workload.object):
            if target_name(seen) == (workload.object.kind, workload.object.name) and (
                seen.namespace == workload.namespace
            ):
                default = 1 if scaler == "HorizontalPodAutoscaler" else 0
                least = whole(seen.data, "spec", keys)
                # From zero up there is one at the least while there is anything to evict.
                floor = max(1, default if least is None else least)
                return floor * workload.group_size, f"{keys} of {seen.ref}"
    replicas = 1 if workload.replicas is None else workload.replicas
    return replicas * workload.group_size, f"replicas of {workload.object.ref}"


def _needed(amount: object, pods: int) -> int | None:
    """A number or a percentage of pods, rounded up as the disruption controller does; None where it is neither."""
    if isinstance(amount, int) and not isinstance(amount, bool):
        return amount
    if isinstance(amount, str) and (percent := re.fullmatch(r"([0-9]{1,9})%", amount)):
        return -(-int(percent[1]) * pods // 100)
    return None


def _blocks(objects: Objects) -> Iterator[Sighting]:
    for budget in objects.of("PodDisruptionBudget"):
        most, least = dig(budget.data, "spec", "maxUnavailable"), dig(budget.data, "spec", "minAvailable")
        if most is None and least is None:
            yield Sighting(
                budget, ("spec",), "neither maxUnavailable nor minAvailable is written, and so no pod may go"
            )
        elif most is not None and _needed(most, 100) == 0:
            yield Sighting(budget, ("spec", "maxUnavailable"), f"maxUnavailable: {most} lets no pod go, ever")
        elif isinstance(least, str) and _needed(least, 100) == 100:
            yield Sighting(budget, ("spec", "minAvailable"), f"minAvailable: {least} lets no pod go, ever")
        elif said := _without_scale(objects, budget, most, least):
            yield Sighting(budget, ("spec", "minAvailable" if most is None else "maxUnavailable"), said)
        elif least is not None:
            yield from _blocks_at_the_floor(objects, budget, least)


_UNSCALED = ("Job", "CronJob", "JobSet", "RayCluster", "RayService", "RayJob", "ScaledJob", "Pod")
"""Kinds whose pods belong to something without a scale subresource, or to nobody. So do those of a DaemonSet, which no
drain evicts."""


def _without_scale(objects: Objects, budget: Seen, most: object, least: object) -> str:
    """A share of pods is counted by the scale of their owners. Where one has none the disruption controller fails, and
    lets nobody go (kubernetes v1.37 pkg/controller/disruption: getExpectedScale, failSafe)."""
    if most is None and not isinstance(least, str):
        return ""
    for workload in objects.selected(budget) or ():
        if workload.object.kind in _UNSCALED and not (objects.live and workload.object.kind == "Pod"):
            written = f"minAvailable: {least}" if most is None else f"maxUnavailable: {most}"
            return (
                f"{written} is counted by the scale of the pods' owners, and pods of {workload.object.ref} have an "
                "owner without one; only a minAvailable in whole numbers works there"
            )
    return ""


def _blocks_at_the_floor(objects: Objects, budget: Seen, least: object) -> Iterator[Sighting]:
    # Those of a DaemonSet are as many as there are nodes, and no drain evicts them.
    chosen = [w for w in objects.selected(budget) or () if w.object.kind not in ("Pod", "DaemonSet")]
    if not chosen:
        return
    floors = [floor_of(objects, workload) for workload in chosen]
    pods = sum(floor for floor, _ in floors)
    needed = _needed(least, pods)
    if needed is not None and pods and needed >= pods:
        who = " and ".join(who for _, who in floors)
        yield Sighting(
            budget, ("spec", "minAvailable"),
            f"minAvailable: {least} is all of the {pods} pods that {who} gives; while there are no more, none may go",
        )  # fmt: skip


def _selects_nothing(objects: Objects) -> Iterator[Sighting]:
    for budget in objects.of("PodDisruptionBudget"):
        if dig(budget.data, "spec", "selector") is None:
            yield Sighting(budget, ("spec",), "it has no selector, and so selects no pod")
            continue
        there = [w for w in objects.workloads if w.namespace == budget.namespace]
        # Manifests of one namespace may lie in several folders; with none of its pods here, nothing can be said.
        unread = any(seen.namespace == budget.namespace for seen in objects.unread)
        if (
            objects.selected(budget) == []
            and (objects.live or (there and not unread))
            and not objects.may_select(budget)
        ):
            names = ", ".join(sorted({w.object.ref for w in there})[:3]) or "no workload at all"
            yield Sighting(budget, ("spec", "selector"), f"it selects none of the pods of {names}")


def _two_on_one_pod(objects: Objects) -> Iterator[Sighting]:
    budgets: dict[str, dict[str, Seen]] = {}
    for budget in objects.of("PodDisruptionBudget"):
        for workload in objects.selected(budget) or ():
            budgets.setdefault(workload.object.ref, {})[budget.ref] = budget
    told: set[tuple[str, ...]] = set()
    for workload_ref, both in budgets.items():
        if len(both) > 1 and tuple(both) not in told:
            told.add(tuple(both))
            *others, last = both.values()
            first = ", ".join(budget.ref for budget in others)
            yield Sighting(
                last, ("spec", "selector"), f"pods of {workload_ref} are selected by it and by {first}",
                others=tuple(others),
            )  # fmt: skip


def _says_both(objects: Objects) -> Iterator[Sighting]:
    for budget in objects.of("PodDisruptionBudget"):
        if dig(budget.data, "spec", "minAvailable") is not None and (
            dig(budget.data, "spec", "maxUnavailable") is not None
        ):
            yield Sighting(
                budget, ("spec",), f"minAvailable: {text(budget.data, 'spec', 'minAvailable')} and maxUnavailable: "
                f"{text(budget.data, 'spec', 'maxUnavailable')} both stand in it",
            )  # fmt: skip


PDB_BLOCKS_EVERY_DRAIN = Rule(
    "pdb-blocks-every-drain", Severity.ERROR,
    "The budget lets no pod be evicted, so no node with one of them can be drained.",
    "maxUnavailable: 1 or a percentage, with more replicas than the budget must keep",
    "let one pod go, or accept it with the way in which nodes are drained all the same",
    "Drains hung for ever, and spot nodes were taken away with their pods still running.",
    "kubernetes-sigs/karpenter#2802, #1776, aws/karpenter-provider-aws#8160", _LOOKS_AT, _blocks,
)  # fmt: skip
PDB_SELECTS_NOTHING = Rule(
    "pdb-selects-nothing", Severity.ERROR,
    "The budget protects nobody: a drain may take all replicas at once.",
    "a selector with the labels of the pod template",
    "compare spec.selector with spec.template.metadata.labels",
    "Its expectedPods stays 0, and every eviction is answered as if there were no budget.",
    "kubernetes v1.37 pkg/controller/disruption, pkg/registry/core/pod/storage/eviction.go", _LOOKS_AT,
    _selects_nothing,
)  # fmt: skip
TWO_PDBS_ON_ONE_POD = Rule(
    "two-pdbs-on-one-pod", Severity.ERROR,
    "The API server refuses to evict a pod that two budgets select.",
    "one budget for each pod",
    "narrow one selector, or delete one budget",
    "Every eviction of such a pod is answered with 500, and drains go on asking until somebody forces them.",
    "kubernetes v1.37 pkg/registry/core/pod/storage/eviction.go; karpenter v1.14.1, event FailedDraining", _LOOKS_AT,
    _two_on_one_pod,
)  # fmt: skip
PDB_OF_TWO_MINDS = Rule(
    "pdb-says-both", Severity.ERROR,
    "The API server refuses a budget with both minAvailable and maxUnavailable.",
    "one of them",
    "keep maxUnavailable: it still means something when the number of replicas changes",
    "The budget was never there.",
    "kubernetes v1.37 pkg/apis/policy/validation", _LOOKS_AT, _says_both,
)  # fmt: skip

BUDGETS = (PDB_BLOCKS_EVERY_DRAIN, PDB_SELECTS_NOTHING, TWO_PDBS_ON_ONE_POD, PDB_OF_TWO_MINDS)
