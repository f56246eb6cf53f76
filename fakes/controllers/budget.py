"""What a PodDisruptionBudget allows at this moment. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fakes.clock import parse_stamp
from fakes.controllers.objects import generation_of, is_ready, is_terminating, name_of, with_condition
from fakes.controllers.quantity import scaled_value
from harness.kube.port import Json

STALE_DISRUPTION_S = 120.0
"""Kubernetes' own figure: an admitted eviction whose pod is not terminating after so long is taken for failed."""


@dataclass(frozen=True, slots=True)
class Need:
    """``expected`` pods should exist, ``healthy`` of them have to stay healthy."""

    expected: int
    healthy: int


def need_of(pdb: Json, pods: int, scale: int) -> Need:
    """``scale`` is what the pods' controllers ask for, ``pods`` how many the selector finds.

    Percentages are of the scale and round up, for maxUnavailable too: 25 % of 7 lets two go. A budget that says neither
    expects no pod, and so lets none go (kubernetes v1.37 pkg/controller/disruption, getExpectedPodCount).
    """
    spec = pdb["spec"]
    if (limit := spec.get("maxUnavailable")) is not None:
        return Need(scale, max(0, scale - scaled_value(limit, scale, round_up=True)))
    least = spec.get("minAvailable")
    if isinstance(least, str):
        return Need(scale, scaled_value(least, scale, round_up=True))
    return Need(0, 0) if least is None else Need(pods, int(least))


def still_disrupted(
    pods: Sequence[Json], disrupted: Mapping[str, str], now: datetime, stale_s: float = STALE_DISRUPTION_S
) -> dict[str, str]:
    """Admitted evictions whose pods do not show it yet. A pod that is gone or terminating speaks for itself."""
    kept = {}
    for pod in pods:
        since = disrupted.get(name_of(pod))
        if since is not None and not is_terminating(pod) and now < parse_stamp(since) + timedelta(seconds=stale_s):
            kept[name_of(pod)] = since
    return kept


def is_healthy(pod: Json) -> bool:
    return is_ready(pod) and not is_terminating(pod)


@dataclass(frozen=True, slots=True)
class Selected:
    """What a budget's selector finds: how many pods, how many of them healthy, and those that admitted evictions have
    noted."""

    pods: int
    healthy: int
    noted: Sequence[Json] = ()

    def healthy_but(self, disrupted: Mapping[str, str]) -> int:
        """Ready pods that nobody is about to take away. Whoever counts one too many breaks the budget, so a pod counts
        only while neither its own deletion nor an admitted eviction is known."""
        return self.healthy - sum(is_healthy(p) and name_of(p) in disrupted for p in self.noted)


def next_status(pdb: Json, selected: Selected, scale: int, now: datetime, stamp: str) -> Json:
    old = pdb.get("status") or {}
    need = need_of(pdb, selected.pods, scale)
    disrupted = still_disrupted(selected.noted, old.get("disruptedPods") or {}, now)
    healthy = selected.healthy_but(disrupted)
    allowed = max(0, healthy - need.healthy) if need.expected > 0 else 0
    condition = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed > 0 else "False",
        "reason": "SufficientPods" if allowed > 0 else "InsufficientPods",
        "message": "",
        "observedGeneration": generation_of(pdb),
    }
    status: Json = {
        "observedGeneration": generation_of(pdb),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": need.healthy,
        "expectedPods": need.expected,
        "conditions": with_condition(old.get("conditions"), condition, stamp),
    }
    if disrupted:
        status["disruptedPods"] = disrupted
    return status


def failed_status(pdb: Json, why: str, stamp: str) -> Json:
    """Nothing may go while the budget cannot be computed."""
    old = pdb.get("status") or {}
    condition = {
        "type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": why,
        "observedGeneration": generation_of(pdb),
    }  # fmt: skip
    conditions = with_condition(old.get("conditions"), condition, stamp)
    counts = {name: int(old.get(name) or 0) for name in ("currentHealthy", "desiredHealthy", "expectedPods")}
    return {
        **old,
        **counts,
        "disruptionsAllowed": 0,
        "observedGeneration": generation_of(pdb),
        "conditions": conditions,
    }
