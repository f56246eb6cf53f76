"""Replicas that an autoscaler took away though it could read nothing: by what it says, by KEDA, or by a hole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from harness.checks.story import clock, who
from harness.clock import NS_PER_S
from harness.history.autoscaler import autoscalers, scales
from harness.history.lives import Life, condition, lives, owner_of
from harness.history.replica_sets import replica_steps
from harness.history.tables import ObjectEvent, ObjectEventType

if TYPE_CHECKING:
    from harness.history.reader import History

SOONER_NS = NS_PER_S
"""The autoscaler may read so much sooner than the recorder."""


class Unread(Protocol):
    """A time without readings, as ``metrics_path`` finds them."""

    @property
    def metric(self) -> str: ...
    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...
    @property
    def watched(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class BlindStep:
    """The autoscaler took replicas away though it could read nothing."""

    target: str
    before: int
    after: int
    event: ObjectEvent
    why: str
    fell_back: bool = False
    """To a number that somebody wrote down for the time in which nothing can be read."""


def blind_steps(history: History, holes: Sequence[Unread]) -> list[BlindStep]:
    """Steps down in a hole, or while the autoscaler itself said that it could not read its metrics, or KEDA that it
    made one up."""
    found: list[BlindStep] = []
    for scaler in autoscalers(history):
        for target in targets_of(history, scaler):
            for before, after, event in replica_steps(target):
                listed_first = event.type is ObjectEventType.LISTED  # when it was written nobody saw
                if after >= before or event.t_ns < history.run.load_start_ns or listed_first:
                    continue
                said = _could_not_read(scaler, event.t_ns, after)
                made_up = _fell_back(history, target, event.t_ns)
                hole = next((h for h in holes if h.watched and h.start_ns < event.t_ns < h.end_ns - SOONER_NS), None)
                if made_up is not None:
                    found.append(BlindStep(target.name, before, after, event, made_up, fell_back=True))
                elif said is not None:
                    found.append(BlindStep(target.name, before, after, event, f"{who(scaler)} said {said}"))
                elif hole is not None:
                    why = f"{hole.metric} could not be read since {clock(history, hole.start_ns)}"
                    found.append(BlindStep(target.name, before, after, event, why))
    return found


def _could_not_read(scaler: Life, t_ns: int, size: int) -> str | None:
    """The autoscaler's own reason why it could not read, when it set this size; None where it could.

    A pass writes the size first and its status after it (kubernetes pkg/controller/podautoscaler/horizontal.go), so
    what was known at the step is the pass before it: the first status after it that wants this size must say so too.
    """
    later = next((e.object for e in scaler.seen if e.t_ns > t_ns), None)
    own = later if later is not None and later.get("status", {}).get("desiredReplicas") == size else None
    reason = ""
    for told in (own, scaler.at(t_ns)):
        if told is None:
            continue
        active = condition(told, "ScalingActive")
        reason = str(active.get("reason") or "")
        if active.get("status") != "False" or not reason.startswith("FailedGet"):
            return None
    return reason or None


def targets_of(history: History, scaler: Life) -> list[Life]:
    """Whose size it decides."""
    kinds = ("Deployment", "ReplicaSet")
    return [t for kind in kinds for t in lives(history.objects, kind) if not owner_of(t.last) and scales(scaler, t)]


def _fell_back(history: History, target: Life, t_ns: int) -> str | None:
    """What KEDA's ScaledObject said of itself then (keda.sh/v1alpha1, condition Fallback): the autoscaler is handed the
    number that its ``fallback`` names, as if it had been measured."""
    for scaled in lives(history.objects, "ScaledObject"):
        told = scaled.at(t_ns)
        if told is None or scaled.namespace != target.namespace:
            continue
        ref = told.get("spec", {}).get("scaleTargetRef") or {}
        if ref.get("name") != target.name or ref.get("kind", "Deployment") != target.kind:
            continue
        if condition(told, "Fallback").get("status") == "True":
            size = (told.get("spec", {}).get("fallback") or {}).get("replicas")
            return f"{who(scaled)} could not read its source and fell back to {size}"
    return None
