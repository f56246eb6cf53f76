"""A rise of the load that the autoscaler could read, had room to answer, and did not: no replica was ever decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.units import NS_PER_S
from harness.history.autoscaler import autoscalers, needs
from harness.history.lives import lives
from harness.history.scaleup import LOAD_STEP

if TYPE_CHECKING:
    from harness.history.reader import History

SUSTAINED_S = 45
"""Scenario seconds above the target before silence counts: three periods of an HPA's default 15 s."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """``since_ns`` to ``until_ns``: the longest span of scrapes above the target after a load step."""

    step_ns: int
    since_ns: int
    until_ns: int
    replicas: int
    replicas_max: int


def unanswered_rise(history: History, limit_ns: int) -> Unanswered | None:
    """None when nothing proves it: no load step, no sustained rise, no room to grow, or too little recorded to tell."""
    scale = history.run.time_scale
    room = _room(history)
    steps = [mark.t_ns for mark in history.marks if mark.name == LOAD_STEP]
    blind = any(gap.kind in ("HorizontalPodAutoscaler", "Deployment", "ReplicaSet") for gap in history.gaps)
    if room is None or not steps or blind:
        return None
    for need in needs(history):
        if need.end_ns - need.start_ns < SUSTAINED_S / scale * NS_PER_S:
            continue
        step_ns = max((step for step in steps if step <= need.start_ns), default=None)
        if step_ns is not None and step_ns + limit_ns <= history.run.load_end_ns:
            return Unanswered(step_ns, need.start_ns, need.end_ns, *room)
    return None


def _room(history: History) -> tuple[int, int] | None:
    """(replicas, most allowed) of the scaled workload, where every recorded state had room to grow."""
    for life in autoscalers(history):
        spec = life.last.get("spec", {})
        target = spec.get("scaleTargetRef", {})
        most = int(spec.get("maxReplicas", 0))
        for scaled in lives(history.objects, str(target.get("kind", ""))):
            if (scaled.name, scaled.namespace) == (target.get("name"), life.namespace):
                counts = [int(event.object.get("spec", {}).get("replicas", 1)) for event in scaled.seen]
                return (counts[-1], most) if max(counts) < most else None
    return None
