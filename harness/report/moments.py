"""What happened, in the order of time: the moments of a run that a person would tell another of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.checks.units import both, count, scenario_s
from harness.history.replica_sets import Origin
from harness.history.scaleup import LOAD_STEP, replicas_that_came
from harness.history.tables import FaultStage
from harness.report.content import Section, Table, row_of
from harness.report.streams import Trouble

if TYPE_CHECKING:
    from harness.history.reader import History

MOMENTS = 40
_STAGES = {
    FaultStage.INJECTED: "struck", FaultStage.NOT_OBSERVED: "took no effect that could be seen",
    FaultStage.ENDED: "was over by itself", FaultStage.HEALED: "was healed", FaultStage.FAILED: "failed",
}  # fmt: skip
Moment = tuple[int, str, str]


def what_happened(history: History, found: list[Trouble]) -> Section:
    """``found`` are the requests that were lost, failed or late."""
    told = sorted([*_load(history), *_faults(history), *_replicas(history), *_requests(history, found)])
    if not told:
        return Section("What happened", "Nothing that was recorded.")
    every = told if len(told) <= MOMENTS else [*told[: MOMENTS // 2], *told[-MOMENTS // 2 :]]
    scale, start = history.run.time_scale, history.run.load_start_ns
    rows = tuple(row_of(f"{scenario_s(t - start, scale):.1f}", what, text) for t, what, text in every)
    left_out = len(told) - len(every)
    notes = (f"{count(left_out, 'moment')} between these are left out.",) if left_out else ()
    return Section(
        "What happened", "Times are scenario seconds since the load began.", Table(("at, s", "", "what"), rows), notes
    )


def _load(history: History) -> Iterator[Moment]:
    run = history.run
    if not run.load_end_ns:
        return
    yield run.load_start_ns, "load", f"the load began: {run.planned} requests planned"
    steps = [mark for mark in history.marks if mark.name == LOAD_STEP and mark.t_ns > run.load_start_ns]
    for mark in steps:
        yield mark.t_ns, "load", f"the load changed{': ' + mark.detail if mark.detail else ''}"
    yield run.load_end_ns, "load", "the load ended" if run.ended == "completed" else f"the run ended early: {run.ended}"


def _faults(history: History) -> Iterator[Moment]:
    for event in history.faults:
        if event.stage in _STAGES:
            on = f" on {', '.join(event.targets)}" if event.targets else ""
            detail = f" ({event.detail})" if event.detail else ""
            yield event.t_ns, "fault", f"{event.fault_id} {_STAGES[event.stage]}{on}{detail}"
    for gap in history.gaps:
        yield gap.since_ns or 0, "recorder", f"blind for {gap.kind}: {gap.reason}"


def _replicas(history: History) -> Iterator[Moment]:
    for replica in replicas_that_came(history):
        name = replica.pod or "a replica without a pod"
        why = "replaces " + replica.predecessor if replica.origin is Origin.REPLACEMENT else "added"
        if (decided := replica.marks["T1"].t_ns) is not None:
            yield decided, "replica", f"{name} decided ({why})"
        if (served := replica.served_ns) is not None and replica.start_ns is not None:
            took = both(served - replica.start_ns, history.run.time_scale)
            yield served, "replica", f"{name} on {replica.node} served its first token, {took} after its clock started"
        elif replica.waits_for and replica.withdrawn_ns is not None:
            yield replica.withdrawn_ns, "replica", f"{name} was withdrawn; it waited for {replica.waits_for}"


def _requests(history: History, found: list[Trouble]) -> Iterator[Moment]:
    """The first of each kind of trouble, and how many of that kind there were."""
    kinds: dict[str, list[Trouble]] = {}
    for trouble in found:
        kind = trouble.cause or ("late" if trouble.row.ok else trouble.row.outcome)
        kinds.setdefault(kind, []).append(trouble)
    for kind, of_kind in kinds.items():
        times = [t.row.intended_ns if t.row.ok or t.row.end_ns is None else t.row.end_ns for t in of_kind]
        more = f", the first of {len(of_kind)} until {_at(history, max(times))}" if len(of_kind) > 1 else ""
        yield min(times), "request", f"a request was {'lost: ' if of_kind[0].cause else ''}{kind}{more}"


def _at(history: History, t_ns: int) -> str:
    return f"{scenario_s(t_ns - history.run.load_start_ns, history.run.time_scale):.1f} s"
