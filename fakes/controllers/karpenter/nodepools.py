"""What a NodePool says, read for the controllers: limits, requirements, the template, disruption and its budgets. Pure.

Rules as of Karpenter v1.15 pkg/apis/v1/nodepool.go and pkg/utils/disruption.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fakes.controllers.karpenter.schedule import ScheduleUnreadable, is_active
from fakes.controllers.objects import name_of
from fakes.controllers.placement import matches_node
from fakes.controllers.quantity import scaled_value
from fakes.controllers.resources import amounts
from fakes.durations import seconds_of
from harness.kube.port import Json

HASH_ANNOTATION = "karpenter.sh/nodepool-hash"
HASH_VERSION_ANNOTATION = "karpenter.sh/nodepool-hash-version"
HASH_VERSION = "v3"
UNDERUTILIZED, EMPTY, DRIFTED = "Underutilized", "Empty", "Drifted"
NEVER = "Never"
UNLIMITED = 2**31 - 1


def duration_s(text: str | None) -> float | None:
    """A Go duration in seconds; None for ``Never`` and for what is not there."""
    if text is None or text == NEVER:
        return None
    return seconds_of(text)


@dataclass(frozen=True, slots=True)
class Budget:
    """``reasons`` None: for all of them. ``schedule`` None: at all times, else for ``duration_s`` from each of its
    moments on."""

    nodes: int | str
    reasons: tuple[str, ...] | None = None
    schedule: str | None = None
    duration_s: float = 0.0

    def allows(self, nodes: int, now: datetime) -> int:
        """Percentages round up, so a budget of some percent always lets one node go. Raises ``ScheduleUnreadable``."""
        if self.schedule is not None and not is_active(self.schedule, self.duration_s, now):
            return UNLIMITED
        return scaled_value(self.nodes, nodes, round_up=True)

    def is_for(self, reason: str) -> bool:
        return self.reasons is None or reason in self.reasons


@dataclass(frozen=True, slots=True)
class Rules:
    """Durations in scenario seconds; None: never."""

    name: str
    weight: int
    limits: Mapping[str, int]
    requirements: Sequence[Json]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: Sequence[Json]
    startup_taints: Sequence[Json]
    policy: str
    consolidate_after_s: float | None
    budgets: tuple[Budget, ...]
    expire_after: str
    grace: str | None
    hash: str

    @property
    def min_values(self) -> dict[str, int]:
        return {r["key"]: int(r["minValues"]) for r in self.requirements if r.get("minValues")}

    def allowed(self, nodes: int, reason: str, now: datetime) -> int:
        """How many of the pool's ``nodes`` may be under disruption for this reason; the strictest budget counts. None
        where one of the budgets, of whatever reason, cannot be read."""
        try:
            limits = [(budget, budget.allows(nodes, now)) for budget in self.budgets]
        except ScheduleUnreadable:
            return 0
        return min((most for budget, most in limits if budget.is_for(reason)), default=UNLIMITED)

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels meets the requirements. A key that no machine has becomes a label."""
        return all(_met(requirement, labels) for requirement in self.requirements)

    def node_labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """The labels of a node made of a machine with ``labels``."""
        own = {
            r["key"]: r["values"][0]
            for r in self.requirements
            if r["operator"] == "In" and r["key"] not in labels and r.get("values")
        }
        return {**labels, **own, **self.labels}


def rules(pool: Json) -> Rules:
    spec = pool["spec"]
    template = spec.get("template") or {}
    meta, node = template.get("metadata") or {}, template.get("spec") or {}
    disruption = spec.get("disruption") or {}
    return Rules(
        name=name_of(pool),
        weight=int(spec.get("weight") or 0),
        limits=amounts(spec.get("limits")),
        requirements=node.get("requirements") or (),
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
        taints=node.get("taints") or (),
        startup_taints=node.get("startupTaints") or (),
        policy=disruption.get("consolidationPolicy") or "WhenEmptyOrUnderutilized",
        consolidate_after_s=duration_s(disruption.get("consolidateAfter", "0s")),
        budgets=tuple(_budget(b) for b in disruption.get("budgets") or ({"nodes": "10%"},)),
        expire_after=node.get("expireAfter") or "720h",
        grace=node.get("terminationGracePeriod"),
        hash=template_hash(pool),
    )


def template_hash(pool: Json) -> str:
    """Of the template but for its requirements, which are compared by themselves: a claim made from another template
    has drifted."""
    template = pool["spec"].get("template") or {}
    node = {k: v for k, v in (template.get("spec") or {}).items() if k not in ("requirements", "resources")}
    text = json.dumps({"metadata": template.get("metadata") or {}, "spec": node}, sort_keys=True)
    return str(int(hashlib.sha256(text.encode()).hexdigest()[:15], 16))


def _budget(raw: Json) -> Budget:
    nodes = str(raw.get("nodes", "10%"))
    reasons = raw.get("reasons")
    return Budget(
        nodes if nodes.endswith("%") else int(nodes),
        None if reasons is None else tuple(reasons),
        raw.get("schedule"),
        duration_s(raw.get("duration")) or 0.0,
    )


def _met(requirement: Json, labels: Mapping[str, str]) -> bool:
    if requirement["key"] not in labels:
        return requirement["operator"] not in ("Gt", "Lt", "Gte", "Lte")
    terms = [{"matchExpressions": [requirement]}]
    needed = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return matches_node({"affinity": needed}, {"metadata": {"name": "", "labels": labels}})
