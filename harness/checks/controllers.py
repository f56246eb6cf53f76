"""One writer decides the size of a workload: it acts on what it reads, nobody turns it back, and it does not swing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from harness.checks.sight import blind
from harness.checks.story import clock, moment, tell, who
from harness.checks.units import NS_PER_S, both, count, listed, span_ns
from harness.history.autoscaler import autoscalers, pod_metrics, replicas_max, scales, told
from harness.history.lives import Json, Life, condition, lives, owner_of
from harness.history.replica_sets import replica_steps
from harness.history.scaleup import LOAD_STEP
from harness.history.tables import ObjectEvent
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import ControllersSpec

NEEDS = ("machine_did_not_stall",)
PROVES = "a fight or a second autoscaler"
"""Needs nothing to hold, unlike what is judged by time alone."""
_SCALED_KINDS = ("Deployment", "ReplicaSet")
_BLINDING = frozenset({*_SCALED_KINDS, "HorizontalPodAutoscaler"})
_EVICTED_BY_VPA = "EvictedByVPA"
_NEAR_NS = NS_PER_S
"""The size is written this much before the status that tells of it, or is received so."""


@dataclass(frozen=True, slots=True)
class Write:
    """One change of a size, and who made it by the object's own account; None where that is not recorded."""

    target: Life
    before: int
    after: int
    event: ObjectEvent
    writer: str | None

    @property
    def wakes(self) -> bool:
        """To or from 0: another controller than the one that scales from 1 on may do that."""
        return 0 in (self.before, self.after)


@dataclass(frozen=True, slots=True)
class Need:
    """A time in which an autoscaler below its maximum said that it read more than it keeps. Did it raise the size?"""

    scaler: Life
    event: ObjectEvent
    end_ns: int
    read: float
    kept: float
    raised: bool


Pair = tuple[Write, Write]
_TOLERANCE = 1.1
"""The HPA leaves a size alone while its metric is within a tenth of the target."""


def controllers(history: History, spec: ControllersSpec) -> Finding:
    """Writers are read from managedFields of what has a size of its own; who only wakes it from 0 is no rival.

    A fight is one writer turning back what another wrote just before. An oscillation is a size that goes and comes back
    within `oscillation_s_max` with no load step between, whoever wrote it. Two autoscalers on one target are wrong from
    the start, whatever they do. An autoscaler that says itself, for longer than `react_s_max`, that it reads more than
    it keeps, and is not at its maximum, must have raised the size.

    UNKNOWN when no size changed and no autoscaler read a need during the load, when the history does not say who
    changed it, and when the recorder was blind for sizes and nothing was seen to be wrong.
    """
    writes = [w for target in scaled(history) for w in writes_of(history, target)]
    within = span_ns(spec.oscillation_s_max, history.run.time_scale)
    fights = [pair for pair in _pairs(writes) if _fight(pair, within)]
    swings = [pair for pair in _pairs(writes) if _swing(history, pair, within)]
    rivals = _rivals(history)
    needs = [need for scaler in autoscalers(history) for need in needs_of(history, scaler)]
    react_ns = span_ns(spec.react_s_max, history.run.time_scale)
    idle = [n for n in needs if not n.raised and n.end_ns - n.event.t_ns > react_ns]
    unnamed = [w for w in writes if w.writer is None]
    wrong = _wrong(history, spec, fights, swings, rivals, idle)
    gap = blind(history, _BLINDING)
    if wrong and gap is not None and not (rivals or fights):
        status, sentence = Status.UNKNOWN, f"{'; '.join(wrong)}, but the recorder was blind for {gap.kind}"
    elif wrong:
        status, sentence = Status.FAIL, "; ".join(wrong)
    elif not writes and not any(n.raised for n in needs):
        status, sentence = Status.UNKNOWN, "no size was changed during the load, so no writer was put to the test"
    elif unnamed:
        status, sentence = (
            Status.UNKNOWN,
            f"the history does not say who made {count(len(unnamed), 'change')} of a size",
        )
    elif gap is not None:
        status, sentence = Status.UNKNOWN, f"nothing was seen to be wrong, but the recorder was blind for {gap.kind}"
    else:
        by = Counter(w.writer for w in writes)
        names = listed([f"{name} ({n})" for name, n in by.most_common()])
        status, sentence = (
            Status.PASS,
            f"{count(len(writes), 'change')} of a size, by {names}; no fight, no oscillation",
        )
    numbers: dict[str, Value] = {
        "changes": len(writes),
        "writers": len({w.writer for w in writes if w.writer}),
        "fights": len(fights),
        "oscillations": len(swings),
        "targets_with_rival_autoscalers": len(rivals),
        "needs_read": len(needs),
        "needs_not_acted_on": len(idle),
        "evicted_by_vpa_in_events": sum(1 for _ in _vpa(history)),
    }
    story = _story(history, spec, fights, swings, rivals, idle, wrong) if status is Status.FAIL else ""
    rows = _evidence(history, writes, fights, swings, rivals, idle)
    exercised = len(writes) + len(rivals) + len(idle)
    proof = rivals or len(fights) > spec.fights_max
    own = () if proof else NEEDS
    return Finding("controllers", Role.CHECK, status, sentence, exercised, numbers, rows, own, story=story)


def scaled(history: History) -> list[Life]:
    """What has a size that no owner decides for it."""
    return [life for kind in _SCALED_KINDS for life in lives(history.objects, kind) if not owner_of(life.last)]


def writes_of(history: History, target: Life) -> list[Write]:
    """Changes during the load. The first version is no change: whoever made the object gave it its size."""
    first = target.seen[0]
    return [
        Write(target, before, after, event, writer_of(event.object))
        for before, after, event in replica_steps(target)
        if event.t_ns >= history.run.load_start_ns and event is not first
    ]


def writer_of(obj: Json) -> str | None:
    """The owner of ``spec.replicas`` who wrote last; where entries do not say what they own, the last entry."""
    entries = obj.get("metadata", {}).get("managedFields") or []
    owners = [e for e in entries if "f:replicas" in ((e.get("fieldsV1") or {}).get("f:spec") or {})]
    if owners:
        return _name(max(owners, key=lambda entry: str(entry.get("time") or "")))
    return _name(entries[-1]) if entries else None


def _name(entry: Json) -> str:
    by = f" by {entry['subresource']}" if entry.get("subresource") else ""
    return f"{entry.get('manager') or 'unknown'}{by}"


def _pairs(writes: list[Write]) -> list[Pair]:
    return [(a, b) for a, b in pairwise(writes) if a.target.uid == b.target.uid]


def _turned_back(pair: Pair, within_ns: int) -> bool:
    first, second = pair
    back = (first.after - first.before) * (second.after - second.before) < 0
    return back and second.event.t_ns - first.event.t_ns <= within_ns


def _fight(pair: Pair, within_ns: int) -> bool:
    first, second = pair
    known = first.writer is not None and second.writer is not None
    return (
        known and first.writer != second.writer and not (first.wakes or second.wakes) and _turned_back(pair, within_ns)
    )


def _swing(history: History, pair: Pair, within_ns: int) -> bool:
    first, second = pair
    stepped = any(m.name == LOAD_STEP and first.event.t_ns < m.t_ns <= second.event.t_ns for m in history.marks)
    return first.before == second.after and _turned_back(pair, within_ns) and not stepped


def _rivals(history: History) -> list[tuple[str, tuple[Life, ...]]]:
    """Targets that two autoscalers have at once, or whose autoscaler says that another has its pods."""
    by_target: dict[str, list[Life]] = {}
    for scaler in autoscalers(history):
        ref = scaler.last.get("spec", {}).get("scaleTargetRef")
        if ref:
            by_target.setdefault(f"{ref.get('kind')} {scaler.namespace}/{ref.get('name')}", []).append(scaler)
    found = [(target, tuple(own)) for target, own in by_target.items() if _together(own)]
    for target, own in by_target.items():
        if not _together(own) and (told := [a for a in own if a.when(_ambiguous)]):
            found.append((target, tuple(told)))
    return found


def _together(own: list[Life]) -> bool:
    """One that is deleted before the other is made takes turns with it."""
    ordered = sorted(own, key=lambda life: life.born_ns)
    return any(a.gone is None or a.gone.t_ns > b.born_ns for a, b in pairwise(ordered))


def _ambiguous(scaler: Json) -> bool:
    return condition(scaler, "ScalingActive").get("reason") == "AmbiguousSelector"


def needs_of(history: History, scaler: Life) -> list[Need]:
    """By its own status, from the first version that says so to the first that does not."""
    target = next((t for t in scaled(history) if scales(scaler, t)), None)
    if target is None:
        return []
    raises = [event.t_ns for before, after, event in replica_steps(target) if after > before]
    found: list[Need] = []
    for metric, kept in pod_metrics(scaler.last).items():
        start: ObjectEvent | None = None
        most = 0.0
        for event in scaler.seen:
            read = told(event.object, metric)
            high = read is not None and read > kept * _TOLERANCE and _below_its_max(event.object, target, event.t_ns)
            if read is not None and high and event.t_ns >= history.run.load_start_ns:
                start, most = start or event, max(most, read)
            elif start is not None:
                raised = any(start.t_ns - _NEAR_NS <= t <= event.t_ns for t in raises)
                found.append(Need(scaler, start, event.t_ns, most, kept, raised))
                start, most = None, 0.0
    return found


def _below_its_max(scaler: Json, target: Life, t_ns: int) -> bool:
    at = target.at(t_ns)
    most = replicas_max(scaler)
    return at is not None and most is not None and int(at.get("spec", {}).get("replicas", 1)) < most


def _vpa(history: History) -> list[ObjectEvent]:
    """Events may be dropped, so they only attribute."""
    return [e for e in history.objects.of_kind("Event") if e.object.get("reason") == _EVICTED_BY_VPA]


def _wrong(
    history: History,
    spec: ControllersSpec,
    fights: list[Pair],
    swings: list[Pair],
    rivals: list[tuple[str, tuple[Life, ...]]],
    idle: list[Need],
) -> list[str]:
    parts = [f"{target} has {listed([a.name for a in own])} for autoscalers at once" for target, own in rivals]
    if len(fights) > spec.fights_max:
        first, second = fights[0]
        parts.append(
            f"{count(len(fights), 'fight')} over a size (first: {second.writer} set {first.target.name} to "
            f"{second.after} after {first.writer} had set it to {first.after})"
        )
    if len(swings) > spec.oscillations_max:
        first, second = swings[0]
        parts.append(
            f"{count(len(swings), 'oscillation')} (allowed {spec.oscillations_max}; first: {first.target.name} "
            f"{first.before}, {first.after}, {second.after})"
        )
    if idle:
        need = idle[0]
        span = both(need.end_ns - need.event.t_ns, history.run.time_scale)
        parts.append(
            f"{who(need.scaler)} read up to {need.read:g} where it keeps {need.kept:g}, below its maximum, and did "
            f"nothing for {span} (limit {spec.react_s_max:.0f} s)"
        )
    return parts


def _story(
    history: History,
    spec: ControllersSpec,
    fights: list[Pair],
    swings: list[Pair],
    rivals: list[tuple[str, tuple[Life, ...]]],
    idle: list[Need],
    wrong: list[str],
) -> str:
    happened = "; ".join(wrong)
    if rivals:
        target, own = rivals[0]
        return tell(
            promised="one autoscaler decides the size of a workload",
            happened=happened,
            when=moment(history, max(a.born_ns for a in own)),
            objects=[target, *(a.name for a in own)],
            cause=f"{count(len(own), 'autoscaler')} of {target} exist",
            change="keep one of them; of a ScaledObject, keep only the one that it owns",
        )
    if len(fights) > spec.fights_max:
        first, second = fights[0]
        return tell(
            promised="what one controller writes another does not turn back",
            happened=happened,
            when=moment(history, second.event.t_ns),
            objects=[first.target.name],
            cause=f"{first.writer} and {second.writer} both write spec.replicas",
            change=f"take replicas out of what {second.writer} applies, or take its rights to scale",
        )
    if idle:
        need = idle[0]
        conditions = need.event.object.get("status", {}).get("conditions") or ()
        said = listed([f"{c.get('type')} {c.get('status')} ({c.get('reason')})" for c in conditions])
        return tell(
            promised=f"an autoscaler acts on what it reads within {spec.react_s_max:.0f} s",
            happened=happened,
            when=f"since {clock(history, need.event.t_ns)}",
            objects=[who(need.scaler)],
            cause=f"{who(need.scaler)} read the need, did not act, and said: {said}" if said else "",
            change=f"look at the behavior policies of {who(need.scaler)}, its rights on scale, its controller's log",
        )
    first, second = swings[0]
    return tell(
        promised=f"a size does not go and come back within {spec.oscillation_s_max:.0f} s",
        happened=happened,
        when=moment(history, second.event.t_ns),
        objects=[first.target.name],
        cause=f"{first.writer} wrote both" if first.writer and first.writer == second.writer else "",
        change="lengthen the stabilisation window, or make the metric follow the load faster than the window",
    )


def _evidence(
    history: History,
    writes: list[Write],
    fights: list[Pair],
    swings: list[Pair],
    rivals: list[tuple[str, tuple[Life, ...]]],
    idle: list[Need],
) -> tuple[Evidence, ...]:
    scale = history.run.time_scale
    found = [
        Evidence(f"objects:{a.seen[0].index}", a.born_ns, f"{a.name} scales {target}", {"autoscaler": a.name})
        for target, own in rivals
        for a in own
    ]
    for what, pairs in (("fight", fights), ("oscillation", swings)):
        for first, second in pairs:
            span = both(second.event.t_ns - first.event.t_ns, scale)
            text = f"{what}: {first.target.name} {first.before}, {first.after}, {second.after} within {span}"
            facts: dict[str, Value] = {"target": first.target.name, "first": first.writer, "second": second.writer}
            found.append(Evidence(f"objects:{second.event.index}", second.event.t_ns, text, facts))
    for need in idle:
        text = f"{who(need.scaler)} read up to {need.read:g} where it keeps {need.kept:g}, and did nothing"
        found.append(Evidence(f"objects:{need.event.index}", need.event.t_ns, text, {"autoscaler": need.scaler.name}))
    for w in writes:
        text = f"{w.target.name} from {w.before} to {w.after} by {w.writer or 'nobody that is recorded'}"
        written: dict[str, Value] = {"target": w.target.name, "before": w.before, "after": w.after, "writer": w.writer}
        found.append(Evidence(f"objects:{w.event.index}", w.event.t_ns, text, written))
    found += [
        Evidence(f"objects:{e.index}", e.t_ns, f"{_EVICTED_BY_VPA}: {e.object.get('message') or ''}")
        for e in _vpa(history)
    ]
    return tuple(found)
