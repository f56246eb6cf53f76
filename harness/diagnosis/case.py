"""What all rules ask of one history, worked out once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from harness.checks.departures import Fates, PodFate, pod_fates
from harness.checks.losses import losses
from harness.checks.rows import Mask, Request, Rows, rows_of
from harness.checks.units import clock_s, scenario_s, span_ns
from harness.history.lives import ByName, Life, lives, workload_pods
from harness.history.replica_sets import Origin
from harness.history.scaleup import Replica, replicas_that_came
from harness.history.tables import FaultStage
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.checks.causes import Cause
    from harness.history.reader import History

SHOWN = 8
"""Rows of evidence that a diagnosis quotes; all of them stand with the checks."""


_QUIET = 3


class Case:
    """A history and what the checks found in it."""

    def __init__(self, history: History, findings: Sequence[Finding]) -> None:
        self.history = history
        self.findings = tuple(findings)
        self.scale = history.run.time_scale
        self.start_ns = history.run.load_start_ns

    @cached_property
    def failed(self) -> frozenset[str]:
        """Checks that found their promise broken, whether or not their answer counts."""
        return frozenset(f.check for f in self.findings if f.role is Role.CHECK and f.status is Status.FAIL)

    def number(self, check: str, name: str) -> Value:
        return next((f.numbers[name] for f in self.findings if f.check == check and name in f.numbers), None)

    def evidence(self, check: str) -> tuple[Evidence, ...]:
        return tuple(row for f in self.findings if f.check == check and f.status is Status.FAIL for row in f.evidence)

    @cached_property
    def rows(self) -> Rows:
        return rows_of(self.history)

    @cached_property
    def fates(self) -> Fates:
        return pod_fates(self.history)

    def fate(self, row: Request) -> PodFate:
        """Of the pod that a request was on, which has to be in the recording."""
        if (found := self.fates.of(row)) is None:
            raise KeyError(row.pod)
        return found

    @cached_property
    def lost(self) -> Sequence[tuple[Request, Cause]]:
        return losses(self.history)

    @cached_property
    def replicas(self) -> tuple[Replica, ...]:
        return replicas_that_came(self.history)

    @cached_property
    def added(self) -> list[Replica]:
        return [replica for replica in self.replicas if replica.origin is Origin.ADDED]

    @cached_property
    def first_fault_ns(self) -> int | None:
        struck = [f.t_ns for f in self.history.faults if f.disruptive and f.stage is FaultStage.INJECTED]
        return min(struck, default=None)

    def of(self, kind: str) -> tuple[Life, ...]:
        return lives(self.history.objects, kind)

    @cached_property
    def pods(self) -> ByName:
        """Of the workload."""
        return ByName(workload_pods(self.history))

    @cached_property
    def nodes(self) -> dict[str, Life]:
        return {life.name: life for life in self.of("Node")}

    def s(self, ns: int) -> float:
        """A span in scenario seconds."""
        return scenario_s(ns, self.scale)

    def span(self, ns: int) -> str:
        return f"{self.s(ns):.1f} s"

    def clock(self, ns: int) -> str:
        """A span on the clock, for times of tokens, which are never scaled."""
        return f"{clock_s(ns):.1f} s"

    def at(self, t_ns: int) -> str:
        return f"{self.s(t_ns - self.start_ns):.1f} s"

    def ns(self, seconds: float) -> int:
        """Scenario seconds in nanoseconds of the clock."""
        return span_ns(seconds, self.scale)

    @cached_property
    def quiet(self) -> Mask:
        """Requests that met at most ``_QUIET`` others on their replica when they were sent: what makes them slow is no
        queue."""
        rows = self.rows
        found = np.zeros(len(rows), dtype=np.bool_)
        sent, end = rows.numbers("sent_ns"), rows.numbers("end_ns")
        for places in rows.places("pod").values():
            own = places[~np.isnan(sent[places]) & ~np.isnan(end[places])]
            begun, over = np.sort(sent[own]), np.sort(end[own])
            others = np.searchsorted(begun, sent[own], side="left") - np.searchsorted(over, sent[own], side="right")
            found[own[others <= _QUIET]] = True
        return found


def quote(row: Request, text: str) -> Evidence:
    return Evidence(
        row.ref, row.end_ns if row.end_ns is not None else row.sent_ns, text, {"pod": row.pod, "node": row.node}
    )
