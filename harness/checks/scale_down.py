"""Once the load is gone the workload returns to its floor in time, without thrash, and loses no work on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from harness.checks.causes import Cause
from harness.checks.departures import pod_fates
from harness.checks.losses import losses
from harness.checks.machine_did_not_stall import needs_no_crowd
from harness.checks.rows import Request, rows_of
from harness.checks.sight import blind
from harness.checks.story import moment, tell, who
from harness.checks.units import NS_PER_S, both, count, listed, scenario_s, span_ns
from harness.history.autoscaler import autoscalers, needs, readable_ns, replicas_min, scales
from harness.history.lives import Life, condition, lives, owner_of, pods_of, workload_pods
from harness.history.replica_sets import leaving, replica_steps
from harness.history.scaleup import LOAD_STEP
from harness.history.tables import FaultStage, ObjectEvent, ObjectEventType
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import ScaleDownSpec

NEEDS = ("machine_did_not_stall",)
PROVES = "a lost stream"
_SIZES = frozenset({"Deployment", "ReplicaSet", "HorizontalPodAutoscaler"})
_BLINDING = _SIZES | {"Pod", "Node"}
_SAME_MOMENT_NS = NS_PER_S // 4
"""How far apart the same moment may be received by the load and by the recorder."""
_SAME_MOMENT = (
    "request {0.request_id} was cut in the very moment in which {0.pod} was scaled away, so which of the two came "
    "first is not known"
)
_NAMELESS = (
    "request {0.request_id} was cut while {pod}, which was scaled away, ended, and names no pod, so whether that cut "
    "it is not known"
)
_ACTS_NS = NS_PER_S
"""Within this a controller makes of a size what is there."""


@dataclass(frozen=True, slots=True)
class Excursion:
    """A time above the floor. ``over_ns`` is when the last need for it ended: the last raise, or the last time that
    the autoscaler's metric was read above its target. ``until_ns`` is when it ended: at the floor, with the object
    itself, or with the recording."""

    target: Life
    floor: int
    peak: int
    start: ObjectEvent
    over_ns: int
    until_ns: int
    back: ObjectEvent | None
    kept: tuple[str, ...] = ()
    """Pods beyond the floor that nobody asked to go from ``back`` to ``until_ns``."""


@dataclass(frozen=True, slots=True)
class Reversal:
    target: Life
    steps: tuple[int, int, int]
    first: ObjectEvent
    second: ObjectEvent


@dataclass(frozen=True, slots=True)
class _Seen:
    """All that may break the promise, told apart."""

    late: list[Excursion]
    undecided: list[Excursion]
    reversals: list[Reversal]
    short_lived: list[tuple[Life, int]]
    at_risk: int
    """Streams in flight on pods when they were scaled away."""
    lost: list[tuple[Request, Cause]]
    perhaps: list[tuple[Request, str]]
    """Cut, and it is not known whether by that, with why: so shortly before their pod was seen to be scaled away that
    either may have come first, or on a pod that nobody named while one that was scaled away ended."""


def scale_down(history: History, spec: ScaleDownSpec) -> Finding:
    """The floor is what the autoscaler keeps at least, or without one the size at the load's start.

    Each time above the floor puts it to the test. Turning back is no thrash where a load step explains it, and a node
    hit by a fault is not short-lived by choice. A stream cut on a pod that was scaled away is its own proof.

    The size that is wanted is not enough: it is not back while more pods than that are there that nobody asked to go.

    UNKNOWN when the workload was never above its floor, when the recording ends before the time was up or what has the
    size is deleted before that, and when the recorder was blind meanwhile: for sizes, or also for pods and nodes where
    nothing was seen to be wrong. Also when a stream was cut in the very moment in which its pod was scaled away, for
    either may have come first, or was cut while such a pod ended and names no pod.
    """
    excursions = [e for target in targets_of(history) for e in excursions_of(history, target)]
    seen = _look(history, spec, excursions)
    wrong = _wrong(history, spec, seen)
    tested = len(excursions) - len(seen.undecided)
    since_ns = excursions[0].start.t_ns if excursions else 0
    shown_by = _SIZES | ({"Pod"} if any(e.kept for e in seen.late) else frozenset())
    hidden, gap = blind(history, shown_by, since_ns), blind(history, _BLINDING, history.run.load_start_ns)
    lost = len(seen.lost) > spec.streams_lost_max
    if wrong and (lost or hidden is None):
        status, sentence = Status.FAIL, "; ".join(wrong)
    elif not excursions:
        status, sentence = (
            Status.UNKNOWN,
            "the workload was never above its floor, so scaling down was not put to the test",
        )
    elif gap is not None:
        status, sentence = (
            Status.UNKNOWN,
            f"the recorder was blind for {gap.kind} while the workload was above its floor",
        )
    elif seen.undecided:
        e = seen.undecided[0]
        status = Status.UNKNOWN
        ended = f"{e.target.name} was deleted" if e.target.gone else "the recording ends"
        sentence = f"{e.target.name} was still above its floor of {e.floor}, but {ended} before its time was up"
    elif len(seen.lost) + len(seen.perhaps) > spec.streams_lost_max:
        status, sentence = Status.UNKNOWN, seen.perhaps[0][1]
    else:
        status, sentence = Status.PASS, _good(history, spec, excursions, seen.at_risk)
    returned = [e for e in excursions if e.back and not e.kept]
    slowest = max((e.until_ns - e.over_ns for e in returned), default=None)
    numbers: dict[str, Value] = {
        "floor_s_max": spec.floor_s_max,
        "above_floor": len(excursions),
        "returned": len(returned),
        "return_s_worst": None if slowest is None else scenario_s(slowest, history.run.time_scale),
        "late": len(seen.late),
        "reversals": len(seen.reversals),
        "nodes_short_lived": len(seen.short_lived),
        "streams_at_risk": seen.at_risk,
        "streams_lost": len(seen.lost),
    }
    story = _story(history, spec, seen) if status is Status.FAIL else ""
    needs = needs_no_crowd(history) if lost else NEEDS
    rows_ = _evidence(history, seen, excursions)
    return Finding("scale_down", Role.CHECK, status, sentence, max(tested, 0), numbers, rows_, needs, story=story)


def targets_of(history: History) -> tuple[Life, ...]:
    """Whatever decides how many pods the workload has: its Deployments, and ReplicaSets that stand alone."""
    deployments = {life.uid: life for life in lives(history.objects, "Deployment")}
    owners = {owner_of(pod.last) for pod in workload_pods(history)}
    found = {
        target.uid: target
        for life in lives(history.objects, "ReplicaSet")
        if life.uid in owners
        for target in (deployments.get(owner_of(life.last), life),)
    }
    return tuple(found.values())


def excursions_of(history: History, target: Life) -> list[Excursion]:
    scaler = next((a for a in autoscalers(history) if scales(a, target)), None)
    start_ns = history.run.load_start_ns
    sizes = [(e.t_ns, int(e.object.get("spec", {}).get("replicas", 1)), e) for e in target.seen]
    at_start = next((n for t, n, _ in reversed(sizes) if t <= start_ns), sizes[0][1])
    floor = replicas_min(scaler.last) if scaler else at_start
    above = readable_ns(needs(history))
    found: list[Excursion] = []
    open_: ObjectEvent | None = None
    peak = raised_ns = 0
    before = 0
    for t, n, event in sizes:
        if n > floor and open_ is None:
            open_, peak, raised_ns = event, n, max(t, start_ns)
        elif n > floor:
            peak, raised_ns = max(peak, n), max(t, start_ns) if n > before else raised_ns
        elif open_ is not None:
            found.append(Excursion(target, floor, peak, open_, _over(above, raised_ns, t), t, event))
            open_ = None
        before = n
    last_ns = target.gone.t_ns if target.gone else history.recorded_until_ns
    if open_ is not None:
        found.append(Excursion(target, floor, peak, open_, _over(above, raised_ns, last_ns), last_ns, None))
    return [_with_pods(history, e, last_ns) for e in found if e.until_ns >= start_ns]


def _with_pods(history: History, e: Excursion, last_ns: int) -> Excursion:
    """Lowered in name only, where more pods than the floor were there when its size was, and none was asked to go until
    it was raised again, deleted, or the recording ended."""
    if e.back is None:
        return e
    back_ns = e.back.t_ns
    raised = (step.t_ns for before, after, step in replica_steps(e.target) if step.t_ns > back_ns and after > before)
    until_ns = next(raised, last_ns)
    if until_ns - back_ns < _ACTS_NS:
        return e
    left = ((pod, leaving(pod)) for pod in pods_of(history, e.target) if pod.born_ns <= back_ns)
    kept = sorted(pod.name for pod, went in left if went is None or went.t_ns > until_ns)
    return replace(e, until_ns=until_ns, kept=tuple(kept)) if len(kept) > e.floor else e


def _over(above: list[int], raised_ns: int, until_ns: int) -> int:
    return max([raised_ns, *(t for t in above if raised_ns <= t <= until_ns)])


def reversals_of(history: History, target: Life, within_ns: int) -> list[Reversal]:
    steps = [s for s in replica_steps(target) if s[2].t_ns >= history.run.load_start_ns]
    marked = [mark.t_ns for mark in history.marks if mark.name == LOAD_STEP]
    return [
        Reversal(target, (before, after, again), first, second)
        for (before, after, first), (_, again, second) in pairwise(steps)
        if (after - before) * (again - after) < 0
        and second.t_ns - first.t_ns < within_ns
        and not any(first.t_ns < t <= second.t_ns for t in marked)
    ]


def _look(history: History, spec: ScaleDownSpec, excursions: list[Excursion]) -> _Seen:
    limit = span_ns(spec.floor_s_max, history.run.time_scale)
    late = [e for e in excursions if e.until_ns - e.over_ns > limit]
    undecided = [e for e in excursions if (e.back is None or e.kept) and e not in late]
    within = span_ns(spec.reversal_s_min, history.run.time_scale)
    turned = [r for target in targets_of(history) for r in reversals_of(history, target, within)]
    return _Seen(late, undecided, turned, _short_lived(history, spec), _at_risk(history), *_lost(history))


def _short_lived(history: History, spec: ScaleDownSpec) -> list[tuple[Life, int]]:
    struck = {t for f in history.faults if f.disruptive and f.stage is FaultStage.INJECTED for t in f.targets}
    found = []
    for node in lives(history.objects, "Node"):
        gone = None if node.gone is None else node.gone.t_ns
        # A node that a list shows first was there before.
        came = node.born_ns > history.run.load_start_ns and node.seen[0].type is ObjectEventType.ADDED
        if (
            came
            and gone is not None
            and node.name not in struck
            and gone - node.born_ns < span_ns(spec.node_life_s_min, history.run.time_scale)
        ):
            found.append((node, gone - node.born_ns))
    return found


def _at_risk(history: History) -> int:
    """Streams in flight on pods at the moment at which they were scaled away."""
    table = rows_of(history)
    sent, end = table.numbers("sent_ns"), table.numbers("end_ns")
    away = ((f.asked.t_ns, own) for f, own in pod_fates(history).places(table) if f.scaled_away and f.asked)
    return sum(int(((sent[own] <= asked) & ~(end[own] <= asked)).sum()) for asked, own in away)


def _lost(history: History) -> tuple[list[tuple[Request, Cause]], list[tuple[Request, str]]]:
    """Streams cut on pods that were scaled away: after they were asked to go, and those of which that is not sure. One
    that had gone wrong before is another matter, whenever it was given up."""
    fates = pod_fates(history)
    on = ((row, cause, fates.of(row)) for row, cause in losses(history))
    after = [
        (row, cause, cause.fell_ns - fate.asked.t_ns)
        for row, cause, fate in on
        if fate is not None and fate.scaled_away and fate.asked is not None and cause.fell_ns is not None
    ]
    hit = [(row, cause) for row, cause, after_ns in after if after_ns >= 0]
    perhaps = [(row, _SAME_MOMENT.format(row)) for row, _, after_ns in after if -_SAME_MOMENT_NS <= after_ns < 0]
    perhaps += [(row, _NAMELESS.format(row, pod=pod)) for row, pod in _nameless(history)]
    return sorted(hit, key=lambda pair: pair[0].request_id), perhaps


def _nameless(history: History) -> list[tuple[Request, str]]:
    """Streams that were cut while a pod that was scaled away ended, and the pod's name: where the answer had begun it
    came from a pod, though none is named; and where no answer names its pod, that says nothing of any."""
    away = [fate for fate in pod_fates(history).values() if fate.scaled_away]
    named = bool(rows_of(history).on_a_pod.any())
    found: list[tuple[Request, str]] = []
    for row, cause in losses(history):
        fell_ns = cause.fell_ns if cause.fell_ns is not None else row.end_ns
        if row.pod or fell_ns is None or (named and row.first_token_ns is None):
            continue
        ending = (f.name for f in away if f.asked and f.asked.t_ns <= fell_ns <= (f.alive_until_ns or fell_ns))
        if pod := next(ending, None):
            found.append((row, pod))
    return found


def _wrong(history: History, spec: ScaleDownSpec, seen: _Seen) -> list[str]:
    scale = history.run.time_scale
    parts = []
    if len(seen.lost) > spec.streams_lost_max:
        pods = listed(sorted({row.pod or "" for row, _ in seen.lost}))
        parts.append(f"{count(len(seen.lost), 'stream')} lost on pods that were scaled away ({pods})")
    for e in seen.late:
        took = e.until_ns - e.over_ns
        what = f"was back at its floor of {e.floor} late" if e.back else f"was still above its floor of {e.floor}"
        if e.kept:
            what = f"still had {len(e.kept)} pods that nobody asked to go, at a floor of {e.floor}"
        parts.append(
            f"{e.target.name} {what}, {both(took, scale)} after the last need (limit {spec.floor_s_max:.0f} s)"
        )
    if len(seen.reversals) > spec.reversals_max:
        r = seen.reversals[0]
        path = " to ".join(str(n) for n in r.steps)
        span = both(r.second.t_ns - r.first.t_ns, scale)
        parts.append(
            f"{count(len(seen.reversals), 'reversal')} without a load step between (first: {r.target.name} from {path} "
            f"within {span})"
        )
    if seen.short_lived:
        names = listed([f"{node.name} ({both(ns, scale)})" for node, ns in seen.short_lived])
        parts.append(f"{count(len(seen.short_lived), 'node')} went again too soon: {names}")
    return parts


def _good(history: History, spec: ScaleDownSpec, excursions: list[Excursion], at_risk: int) -> str:
    slowest = max(e.until_ns - e.over_ns for e in excursions)
    work = f"all {count(at_risk, 'stream')} on pods that were scaled away ended whole"
    if not at_risk:
        work = "no pod that was scaled away had a stream in it, so that was not put to the test"
    return (
        f"{count(len(excursions), 'time')} above the floor, back within {both(slowest, history.run.time_scale)} of the "
        f"last need (limit {spec.floor_s_max:.0f} s), no thrash; {work}"
    )


def _story(history: History, spec: ScaleDownSpec, seen: _Seen) -> str:
    if len(seen.lost) > spec.streams_lost_max:
        row, cause = seen.lost[0]
        return tell(
            promised="a replica that is scaled away ends the work it has",
            happened=f"request {row.request_id} on {row.pod} ended as {row.outcome}",
            when=moment(history, row.end_ns),
            objects=[str(row.pod)],
            cause=f"{cause.name}{', ' + cause.detail if cause.detail else ''}" if cause.explained else "",
        )
    if seen.late:
        e = seen.late[0]
        return tell(
            promised=f"{e.target.name} is back at {e.floor} within {spec.floor_s_max:.0f} s of the last need",
            happened="; ".join(_wrong(history, spec, seen)),
            when=f"the last need ended {moment(history, e.over_ns)}",
            objects=[e.target.name],
            cause=_why_late(history, e),
            change=_sooner(history, e),
        )
    if len(seen.reversals) > spec.reversals_max:
        r = seen.reversals[0]
        return tell(
            promised="the size of the workload does not turn back within its own stabilisation",
            happened="; ".join(_wrong(history, spec, seen)),
            when=moment(history, r.second.t_ns),
            objects=[r.target.name],
            change="lengthen the stabilisation window, or see the finding `controllers` for a second writer",
        )
    node, _ = seen.short_lived[0]
    return tell(
        promised=f"a node that is started is kept for at least {spec.node_life_s_min:.0f} s",
        happened="; ".join(_wrong(history, spec, seen)),
        when=f"it came {moment(history, node.born_ns)}",
        objects=[node.name],
        change="lengthen consolidateAfter of its pool",
    )


def _sooner(history: History, e: Excursion) -> str:
    """Its window can be shortened only where the autoscaler itself says that it waits for it."""
    if e.kept:
        return "see why the controller of its ReplicaSets deletes no pod"
    scaler = next((a for a in autoscalers(history) if scales(a, e.target)), None)
    waits = scaler is not None and condition(scaler.last, "AbleToScale").get("reason") == "ScaleDownStabilized"
    return "shorten the autoscaler's scale-down window or policy, or allow more time" if waits else ""


def _why_late(history: History, e: Excursion) -> str:
    """What the autoscaler itself said of it last; where it had lowered the size, that is not why."""
    if e.kept and e.back:
        return f"its size was lowered {moment(history, e.back.t_ns)}, and nobody asked {listed(list(e.kept))} to go"
    scaler = next((a for a in autoscalers(history) if scales(a, e.target)), None)
    conditions = (scaler.last.get("status", {}).get("conditions") or ()) if scaler else ()
    reasons = [f"{c['type']} {c.get('status')} ({c['reason']})" for c in conditions if c.get("reason")]
    return f"{who(scaler)} did not lower it, and said last: {listed(reasons)}" if scaler and reasons else ""


def _evidence(history: History, seen: _Seen, excursions: list[Excursion]) -> tuple[Evidence, ...]:
    scale = history.run.time_scale
    found = [
        Evidence(
            row.ref, row.end_ns, f"{row.outcome} on {row.pod}, which was scaled away: {cause.name}", {"pod": row.pod}
        )
        for row, cause in seen.lost
    ]
    for r in seen.reversals:
        path = ", ".join(str(n) for n in r.steps)
        text = f"{r.target.name}: {path} replicas within {both(r.second.t_ns - r.first.t_ns, scale)}"
        found.append(Evidence(f"objects:{r.second.index}", r.second.t_ns, text, {"target": r.target.name}))
    for node, ns in seen.short_lived:
        text = f"{node.name} was there for {both(ns, scale)}"
        found.append(Evidence(f"objects:{node.seen[0].index}", node.born_ns, text, {"node": node.name}))
    for e in sorted(excursions, key=lambda e: e not in seen.late):
        after = f"back {both(e.back.t_ns - e.over_ns, scale)} after the last need" if e.back else "never back"
        after += f", but nobody asked {listed(list(e.kept))} to go" if e.kept else ""
        text = f"{e.target.name} above its floor of {e.floor}, up to {e.peak}: {after}"
        facts: dict[str, Value] = {"target": e.target.name, "floor": e.floor, "peak": e.peak, "over_ns": e.over_ns}
        found.append(Evidence(f"objects:{(e.back or e.start).index}", e.start.t_ns, text, facts))
    return tuple(found)
