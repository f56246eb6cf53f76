"""Which nodes may be disrupted of Karpenter's own free will, what that would cost, and what forbids it. Pure.

Rules as of Karpenter v1.15 pkg/controllers/state/statenode.go and pkg/utils/{pdb,pod,disruption}.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fakes.clock import parse_stamp
from fakes.controllers.karpenter import api
from fakes.controllers.karpenter.nodepools import Rules, duration_s
from fakes.controllers.karpenter.state import is_of_daemon_set
from fakes.controllers.objects import (
    condition_status,
    is_active,
    is_ready,
    is_terminating,
    name_of,
    namespace_of,
)
from fakes.controllers.placement import tolerated
from fakes.kube.selectors import match_label_selector
from harness.kube.port import Json

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


@dataclass(frozen=True, slots=True)
class Candidate:
    """``pods``: those that would have to go elsewhere."""

    node: Json
    claim: Json
    rules: Rules
    pods: tuple[Json, ...]
    price: float
    spot: bool
    cost: float

    @property
    def name(self) -> str:
        return name_of(self.claim)


@dataclass(frozen=True, slots=True)
class Blocked:
    """``said`` is the event's text; empty where that is what somebody asked for, which is no news."""

    said: str


def node_block(claim: Json, node: Json | None, *, nominated: bool, marked: bool) -> Blocked | None:
    if node is None:
        return Blocked("Nodeclaim does not have an associated node")
    if marked or is_terminating(claim) or is_terminating(node):
        return Blocked("Node is deleting or marked for deletion")
    if not api.is_initialized(claim):
        return Blocked("Node isn't initialized")
    if nominated:
        return Blocked("Node is nominated for a pending pod")
    kept = {**(claim["metadata"].get("annotations") or {}), **(node["metadata"].get("annotations") or {})}
    return Blocked("") if kept.get(api.DO_NOT_DISRUPT) == "true" else None


def pods_block(
    pods: Sequence[Json], budgets: Iterable[Json], now: datetime, scale: float, *, keeps: bool = True
) -> Blocked | None:
    """``scale``: scenario seconds per second of ``now``. ``keeps=False`` plants a bug: nobody is left alone."""
    if keeps and any(is_kept(pod, now, scale) for pod in pods):
        return Blocked("")
    found = list(budgets)
    for pod in pods:
        if not _would_be_evicted(pod):
            continue
        mine = [b for b in found if _covers(b, pod)]
        if len(mine) > 1:
            return Blocked(f"Eviction does not support multiple PDBs (PodDisruptionBudget(s)={_names(mine)})")
        if mine and not _allows(mine[0], pod):
            return Blocked(f"Pdb prevents pod evictions (PodDisruptionBudget={_names(mine)})")
    return None


def is_kept(pod: Json, now: datetime, scale: float) -> bool:
    """``karpenter.sh/do-not-disrupt``: "true", or for how long from the pod's start. Anything else protects nothing."""
    text = (pod["metadata"].get("annotations") or {}).get(api.DO_NOT_DISRUPT)
    if not text or not is_active(pod):
        return False
    if text == "true":
        return True
    lasts_s, started = duration_s(text), (pod.get("status") or {}).get("startTime")
    if not lasts_s:
        return False
    return started is None or now < parse_stamp(started) + timedelta(seconds=lasts_s / scale)


def reschedulable(pods: Iterable[Json]) -> tuple[Json, ...]:
    """Pods that would need another node."""
    return tuple(p for p in pods if is_active(p) and not is_of_daemon_set(p))


def disruption_cost(pods: Iterable[Json]) -> float:
    """Of moving these pods, and one for the node: what is cheap to move lowers it for no other."""
    return 1.0 + sum(max(0.0, min(10.0, _eviction_cost(p))) for p in pods)


def is_marked(claim: Json, type: str) -> bool:
    return condition_status(claim, type) == "True"


def _eviction_cost(pod: Json) -> float:
    stated = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    cost = float(stated) if stated.lstrip("-").isdigit() else 0.0
    return 1.0 + cost / 2**27 + float(pod["spec"].get("priority") or 0) / 2**25


def _would_be_evicted(pod: Json) -> bool:
    return is_active(pod) and not tolerated(api.DISRUPTED_TAINT, pod["spec"].get("tolerations") or ())


def _covers(budget: Json, pod: Json) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return namespace_of(budget) == namespace_of(pod) and match_label_selector(budget["spec"].get("selector"), labels)


def _allows(budget: Json, pod: Json) -> bool:
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow" and not is_ready(pod):
        return True
    return int((budget.get("status") or {}).get("disruptionsAllowed") or 0) > 0


def _names(budgets: Iterable[Json]) -> str:
    return "[" + " ".join(f"{namespace_of(b)}/{name_of(b)}" for b in budgets) + "]"
