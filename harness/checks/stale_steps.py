"""Replicas that an autoscaler took away by a value of the past: more requests than it keeps had waited for longer than
what it reads may be old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.blind_steps import SOONER_NS, BlindStep, Unread, targets_of
from harness.checks.pressures import WAITED_NS, waited
from harness.checks.rows import rows_of
from harness.checks.units import span_ns
from harness.history.autoscaler import autoscalers, replicas_max
from harness.history.lives import Life
from harness.history.replica_sets import replica_steps
from harness.history.tables import ObjectEvent, ObjectEventType

if TYPE_CHECKING:
    from harness.history.reader import History

AFTER_A_HOLE_S = 60.0
"""Scenario seconds, four periods of an autoscaler: what is read first after a hole, and so old at most, whatever lag
the limits allow."""


@dataclass(frozen=True, slots=True)
class StaleStep:
    """``waiting_since_ns``: from then to the step so many requests waited that ``metric`` asked for more replicas than
    ``after``."""

    target: str
    before: int
    after: int
    event: ObjectEvent
    metric: str
    waiting_since_ns: int
    after_a_hole: bool


def stale_steps(
    history: History, kept: Mapping[str, Mapping[str, float]], holes: Sequence[Unread], blind: Sequence[BlindStep],
    late_ns: int,
) -> list[StaleStep]:  # fmt: skip
    """``kept``: of each autoscaler by its uid, what it keeps per pod of the metrics that count waiting requests. A
    size follows from the sum (kubernetes pkg/controller/podautoscaler/replica_calculator.go): who lowers one to a
    number of pods for which too many had waited, at every moment of ``late_ns``, had read something older. Steps that
    are ``blind`` are not told twice."""
    told = {step.event.index for step in blind}
    first_ns = span_ns(AFTER_A_HOLE_S, history.run.time_scale)
    found: list[StaleStep] = []
    for scaler in autoscalers(history):
        keeps = kept.get(scaler.uid, {})
        for target in targets_of(history, scaler) if keeps else ():
            for before, after, event in replica_steps(target):
                if after >= before or event.index in told or not _its_own(scaler, before, event):
                    continue
                hole = any(h.watched and h.end_ns - SOONER_NS <= event.t_ns <= h.end_ns + first_ns for h in holes)
                old_ns = min(late_ns, first_ns) if hole else late_ns
                for metric, each in keeps.items():
                    spans = waited(rows_of(history), each * after, WAITED_NS)
                    since = next((a for a, b in spans if a + old_ns < event.t_ns <= b), None)
                    if since is not None:
                        found.append(StaleStep(target.name, before, after, event, metric, since, hole))
                        break
    return found


def _its_own(scaler: Life, before: int, event: ObjectEvent) -> bool:
    """Whether it lowered the size by what it read: it was seen to be lowered, and the most it may be had not been."""
    most = replicas_max(scaler.at(event.t_ns) or scaler.last)
    return event.type is not ObjectEventType.LISTED and (most is None or before <= most)
