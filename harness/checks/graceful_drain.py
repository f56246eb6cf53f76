"""A stream that is in flight when its pod or node is asked to go ends whole, and no stream is cut at all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from harness.checks.causes import SIGTERM
from harness.checks.departures import Fates, PodFate, pod_fates
from harness.checks.drain_story import CUT, REFUSED, UNANSWERED, counted, drain_story, kind_of_loss
from harness.checks.endings import set_aside
from harness.checks.hurried import hurried_pods, hurried_rows, hurried_sentence, hurried_story, unseen_hooks
from harness.checks.losses import losses, refused_without_pod
from harness.checks.machine_did_not_stall import needs_no_crowd
from harness.checks.rows import Mask, Request, Rows, rows_of
from harness.checks.units import NS_PER_S, clock_s, count, listed, span_ns
from harness.history.endpoints import endpoints_terminating
from harness.history.tables import FaultStage, Outcome
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.checks.causes import Cause
    from harness.history.reader import History
    from harness.spec.checks import GracefulDrainSpec

UNLESS = (
    "the machine was crowded (`machine_did_not_stall`), and no server ended its streams in words as it was told to stop"
)
_ROUTING_NS = 250_000_000
"""A router may learn this much later than the recorder that an endpoint is terminating."""
_ROUTED_ROWS = 20
_IN_WORDS = frozenset({Outcome.ABORTED, Outcome.ERROR_IN_STREAM})
_AT_ONCE_NS = 2 * NS_PER_S


@dataclass(frozen=True, slots=True)
class _Streams:
    """The requests of a run, told apart."""

    at_risk: dict[int, tuple[Request, PodFate]]
    """In flight when their pod or node was asked to go, by request. What was refused (429, 4xx) was no stream."""
    scaled: int
    """In flight on a pod that was scaled away, where that puts nothing to the test."""
    lost: list[tuple[Request, Cause]]
    """Unexplained ones first."""
    refused: list[Request]
    """503 with no pod behind it: turned away at the door, no stream was cut."""
    routed: list[Request]
    """Began on a pod that had been asked to go, or whose endpoint was terminating already."""
    aside: int


def graceful_drain(history: History, spec: GracefulDrainSpec) -> Finding:
    """A cut stream is its own proof, whatever cut it and whatever the recorder missed; planned hang-ups stand apart.

    A pod whose containers exit before its preStop hook was over breaks the promise too, whatever became of its streams.

    Where a fault was injected, it must itself have put streams at risk: pods that the autoscaler takes away later, as
    it does in any run, exercise nothing then.

    UNKNOWN when no stream was in flight at any such notice or deletion, when a run that ended early leaves only cut
    streams that nothing in the cluster explains, for its own end may have cut them, when only the records of their
    ends are missing, and when a gap in the recording may hide that a hook was cut short.
    """
    fates = pod_fates(history)
    streams = _streams(history, fates)
    at_risk = [row for row, _ in streams.at_risk.values() if not row.hung_up_by_plan]
    lost_ids = {row.request_id for row, _ in streams.lost}
    whole = [row for row in at_risk if row.request_id not in lost_ids]
    ended_early = history.run.ended != "completed"
    unrecorded = [row for row, _ in streams.lost if row.end_ns is None]
    proof = [row for row, cause in streams.lost if cause.explained or not (ended_early or row.end_ns is None)]
    lost_sentence = _lost_sentence(streams, spec, len(at_risk))
    hurried = hurried_pods(fates.lives, history.run.time_scale)
    lost = len(proof) > spec.streams_lost_max
    if lost or hurried:
        parts = [lost_sentence] if lost else []
        status, sentence = Status.FAIL, "; ".join([*parts, *([hurried_sentence(hurried)] if hurried else [])])
    elif len(streams.lost) > spec.streams_lost_max:
        status = Status.UNKNOWN
        why = f"the run ended early ({history.run.ended}), which may have cut them"
        if not ended_early:
            why = f"the ends of {len(unrecorded)} were lost from the records, so they may have been whole"
        sentence = f"{why}: {lost_sentence}"
    elif not at_risk:
        status = Status.UNKNOWN
        sentence = "no stream was in flight when a pod or node was asked to go, so draining was not put to the test"
        sentence += f" ({count(streams.scaled, 'stream')} on pods that were scaled away)" if streams.scaled else ""
    elif (unseen := unseen_hooks(history, fates.lives)) is not None:
        status = Status.UNKNOWN
        sentence = f"{_whole_sentence(streams, whole)}, but not whether preStop hooks ran to their end: {unseen}"
    else:
        status, sentence = Status.PASS, _whole_sentence(streams, whole)
    kinds = Counter(kind_of_loss(row) for row, _ in streams.lost)
    numbers: dict[str, Value] = {
        "streams_lost_max": spec.streams_lost_max,
        "streams_at_risk": len(at_risk),
        "streams_whole": len(whole),
        "streams_scaled_away": streams.scaled,
        "streams_lost": len(streams.lost),
        "lost_cut": kinds[CUT],
        "lost_refused": kinds[REFUSED],
        "lost_unanswered": kinds[UNANSWERED],
        "streams_lost_at_risk": len(at_risk) - len(whole),
        "streams_lost_unexplained": sum(1 for _, cause in streams.lost if not cause.explained),
        "hung_up_by_plan": int(rows_of(history).hung_up_by_plan.sum()),
        "routed_to_terminating": len(streams.routed),
        "refused_without_pod": len(streams.refused),
        "set_aside_at_run_end": streams.aside,
        "pre_stop_cut_short": len(hurried),
        "pods_left": sum(1 for fate in fates.lives if fate.moments()),
    }
    story = drain_story(history, spec.streams_lost_max, streams.lost, fates) if lost else ""
    story = hurried_story(history, hurried) if hurried and not lost else story
    evidence = (*_evidence(streams), *hurried_rows(hurried))
    exercised = len(at_risk) + len(hurried)
    said = [row for row, cause in streams.lost if _said_at_once(row, cause, fates, history.run.time_scale)]
    needs = () if len(said) > spec.streams_lost_max else needs_no_crowd(history)
    return Finding("graceful_drain", Role.CHECK, status, sentence, exercised, numbers, evidence, needs, story=story)


def _said_at_once(row: Request, cause: Cause, fates: Fates, time_scale: float) -> bool:
    """The server itself ended it, in words, as soon as it was told to stop: that is no matter of time, and a machine
    however crowded makes no server say so."""
    fate = fates.of(row)
    if cause.name != SIGTERM or row.outcome not in _IN_WORDS or fate is None or fate.asked is None:
        return False
    told_ns = fate.asked.t_ns + span_ns(fate.pre_stop_s, time_scale)
    return cause.fell_ns is not None and cause.fell_ns - told_ns <= _AT_ONCE_NS


def _streams(history: History, fates: Fates) -> _Streams:
    table = rows_of(history)
    aside = set_aside(history, table)
    refused = refused_without_pod(table) & ~aside
    lost = list(losses(history))
    faulted = any(event.disruptive and event.stage is FaultStage.INJECTED for event in history.faults)
    streams = (table.ok | table.cut | table.hung_up_by_plan) & ~aside
    hit, tested = _in_flight(table, fates, streams, faulted)
    at_risk = {row.request_id: (row, fate) for row in table.where(tested) if (fate := fates.of(row)) is not None}
    routed = table.where(_routed(history, table, fates) & ~aside)
    scaled = int((hit & ~tested).sum())
    return _Streams(at_risk, scaled, lost, table.where(refused), routed, int(aside.sum()))


def _in_flight(table: Rows, fates: Fates, counted: Mask, faulted: bool) -> tuple[Mask, Mask]:
    """Requests that were in flight when their pod or node was asked to go; and those of them that put the promise to
    the test, which being scaled away does not where a fault was injected."""
    sent, end = table.numbers("sent_ns"), table.numbers("end_ns")
    hit, tested = np.zeros(len(table), dtype=np.bool_), np.zeros(len(table), dtype=np.bool_)
    for fate, places in fates.places(table):
        for moment in fate.moments():
            own = places[counted[places] & (sent[places] <= moment.t_ns) & ~(end[places] <= moment.t_ns)]
            hit[own] = True
            if not (moment.scale_down and faulted):
                tested[own] = True
    return hit, tested


def _routed(history: History, table: Rows, fates: Fates) -> Mask:
    """Sent to a pod that had been asked to go, or whose endpoint was terminating already."""
    sent, routed = table.numbers("sent_ns"), np.zeros(len(table), dtype=np.bool_)
    terminating = endpoints_terminating(history)
    for fate, places in fates.places(table):
        told = [fate.asked.t_ns] if fate.asked is not None else []
        told += [terminating[fate.life.uid]] if fate.life.uid in terminating else []
        if told:
            routed[places] = sent[places] > min(told) + _ROUTING_NS
    return routed


def _lost_sentence(streams: _Streams, spec: GracefulDrainSpec, at_risk: int) -> str:
    """Counts by cause, the unexplained first, each with its requests, pods and nodes."""
    parts: list[str] = []
    for name, n in Counter(cause.name for _, cause in streams.lost).items():
        hit = [row for row, cause in streams.lost if cause.name == name]
        requests = listed([str(row.request_id) for row in hit])
        pods = listed(sorted({row.pod or "no pod named" for row in hit}))
        nodes = listed(sorted({row.node for row in hit if row.node}))
        where = f"{pods} on {nodes}" if nodes else pods
        parts.append(f"{n} {name} ({count(len(hit), 'request').split(' ', 1)[1]} {requests}; {where})")
    return (
        f"{counted([row for row, _ in streams.lost])} (allowed {spec.streams_lost_max}; {at_risk} in flight at a "
        f"notice or deletion): {'; '.join(parts)}"
    )


def _whole_sentence(streams: _Streams, whole: list[Request]) -> str:
    pods = {fate.name for _, fate in streams.at_risk.values()}
    nodes = sorted({fate.node_name for _, fate in streams.at_risk.values() if fate.node_name})
    planned = sum(1 for row, _ in streams.at_risk.values() if row.hung_up_by_plan)
    where = f"{count(len(pods), 'pod')} of {listed(nodes)}"
    text = f"{count(len(whole), 'stream')} in flight on {where} when they were asked to go"
    lost = (
        f"; {count(len(streams.lost), 'stream')} lost, as many as allowed or fewer"
        if streams.lost
        else ", all ended whole"
    )
    apart = f"; {planned} hung up by plan stand apart" if planned else ""
    routed = (
        f"; {count(len(streams.routed), 'request')} began on a pod that was already terminating"
        if streams.routed
        else ""
    )
    return text + lost + apart + routed


def _evidence(streams: _Streams) -> tuple[Evidence, ...]:
    cut = [
        Evidence(
            row.ref,
            row.end_ns,
            f"{row.outcome} on {row.pod or 'no named pod'}{f' ({row.node})' if row.node else ''}: {cause.name}"
            f"{f', {cause.detail}' if cause.detail else ''}",
            {
                "pod": row.pod, "node": row.node, "outcome": row.outcome, "cause": cause.name, "reason": row.reason,
                "seen": f"objects:{cause.seen.index}" if cause.seen else None,
            },
        )
        for row, cause in streams.lost
    ]  # fmt: skip
    routed = [
        Evidence(row.ref, row.sent_ns, f"began on {row.pod}, which was going already", {"pod": row.pod})
        for row in streams.routed[:_ROUTED_ROWS]
    ]
    return (*cut, *routed, *_departures(streams))


def _departures(streams: _Streams) -> list[Evidence]:
    """One row for each pod whose streams were at risk."""
    found: list[Evidence] = []
    lost = {row.request_id for row, _ in streams.lost}
    on: dict[str, list[tuple[Request, PodFate]]] = {}
    for row, fate in streams.at_risk.values():
        on.setdefault(fate.life.uid, []).append((row, fate))
    for own in sorted(on.values(), key=lambda own: (own[0][1].name, own[0][1].life.born_ns)):
        fate = own[0][1]
        name = fate.name
        first = fate.moments()[0]
        cut = sum(1 for row, _ in own if row.request_id in lost)
        longest = max((clock_s((row.end_ns or first.t_ns) - first.t_ns) for row, _ in own), default=0.0)
        ref = f"objects:{fate.asked.index}" if fate.asked else f"objects:{fate.life.seen[-1].index}"
        text = f"{name} on {fate.node_name}: {first.why} with {count(len(own), 'stream')} in flight, {cut} lost"
        found.append(
            Evidence(ref, first.t_ns, text, {"pod": name, "node": fate.node_name, "longest_clock_s": round(longest, 2)})
        )
    return found
