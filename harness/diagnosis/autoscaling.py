"""What autoscalers did with a size, or did not, by what was readable at each moment; and what they were served."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from harness.checks.controllers import needs_of, scaled, writes_of
from harness.checks.scale_down import excursions_of, targets_of
from harness.checks.story import who
from harness.checks.unanswered import SUSTAINED_S
from harness.checks.units import count, listed
from harness.diagnosis.case import SHOWN, Case
from harness.diagnosis.metrics import metrics
from harness.diagnosis.suspect import AUTOSCALER, Suspect
from harness.history.autoscaler import autoscalers, needs, pod_metrics, readings, scales, told
from harness.history.lives import Json, Life, condition
from harness.history.replica_sets import replica_steps
from harness.history.scaleup import LOAD_STEP
from harness.history.tables import ObjectEvent
from harness.verdict import Evidence

_UP = frozenset({"scale_up", "controllers", "slo", "graceful_drain", "capacity", "recovery", "baseline"})
_SIZES = frozenset(
    {"scale_down", "controllers", "scale_up", "graceful_drain", "recovery", "capacity", "slo", "baseline"}
)
Step = tuple[int, int, ObjectEvent]
"""A change of a size: before, after, and the version that shows it."""
_HESITATES_S = 60.0
"""Scenario seconds above the target without an answer: four periods of an HPA's default 15 s."""
_FLIPS = 4
_TURNS_S = 300.0
"""An HPA's default scale-down window: who keeps it cannot turn round sooner."""


def autoscaling(case: Case) -> Iterator[Suspect]:
    two = list(_two_writers(case))
    yield from two
    for scaler in autoscalers(case.history):
        target = next((t for t in targets_of(case.history) if scales(scaler, t)), None)
        if target is None:
            continue
        if not two:
            yield from _swings(case, scaler, target)
        slow = list(_slow_up(case, scaler, target))
        yield from slow or _told_and_idle(case, scaler)
        yield from _never_down(case, scaler, target)
    yield from metrics(case)


def _two_writers(case: Case) -> Iterator[Suspect]:
    """Two that write one size in turns; or two autoscalers of one target, which need not even have begun to."""
    for target in scaled(case.history):
        writes = writes_of(case.history, target)
        known = [(a, b) for a, b in pairwise(writes) if a.writer and b.writer and not (a.wakes or b.wakes)]
        turns = [(a, b) for a, b in known if a.writer != b.writer]
        turned = [(a, b) for a, b in turns if (a.after - a.before) * (b.after - b.before) < 0]
        own = [a for a in autoscalers(case.history) if scales(a, target)]
        if len(own) > 1:
            names = listed([who(scaler) for scaler in own])
            act = f"are two autoscalers of one target, {who(target)}: each sets its size by its own metric"
            second = max(own, key=lambda life: life.born_ns)
            row = Evidence(f"objects:{second.seen[0].index}", second.born_ns, f"{who(second)} has the same target")
            since = max(second.born_ns, case.start_ns)
            yield Suspect(names, act, since, _SIZES | {"controllers"}, seen=(row,), change="keep one of them")
        elif turned:
            names = listed(sorted({w.writer or "" for a, b in turned for w in (a, b)}))
            act = f"write the size of {who(target)} in turns, {count(len(turned), 'time')} each undoing the other"
            rows = tuple(
                Evidence(
                    f"objects:{b.event.index}",
                    b.event.t_ns,
                    f"{b.writer}: {b.before} to {b.after}, after {a.writer}: {a.before} to {a.after}",
                )
                for a, b in turned[:SHOWN]
            )
            change = "let one of them own spec.replicas: leave the field out of what the other applies"
            yield Suspect(
                f"two writers, {names},",
                act,
                turned[0][0].event.t_ns,
                _SIZES | {"controllers"},
                seen=rows,
                change=change,
            )


def _swings(case: Case, scaler: Life, target: Life) -> Iterator[Suspect]:
    """Up and down again and again though what it read did not ask for it."""
    steps = [s for s in replica_steps(target) if s[2].t_ns >= case.start_ns]
    marks = [m.t_ns for m in case.history.marks if m.name == LOAD_STEP]
    flips = [
        (a, b)
        for a, b in pairwise(steps)
        if (a[1] - a[0]) * (b[1] - b[0]) < 0
        and not any(a[2].t_ns < t <= b[2].t_ns for t in marks)
        and b[2].t_ns - a[2].t_ns < case.ns(_TURNS_S)
    ]
    found = case.number("controllers", "oscillations") or case.number("scale_down", "reversals")
    if len(flips) < (1 if found else _FLIPS):
        return
    sizes = [str(step[1]) for step in steps[:SHOWN]]
    act = (
        f"{who(scaler)} turned the size of {target.name} round {count(len(flips), 'time')} without a step of the load "
    )
    act += f"between ({', '.join(sizes)}…), {case.span(_median_gap(flips))} apart"
    rows = tuple(
        Evidence(
            f"objects:{b[2].index}",
            b[2].t_ns,
            f"{target.name}: {a[0]} to {a[1]}, then to {b[1]}; it had read {_read_at(scaler, b[2].t_ns)}",
        )
        for a, b in flips[:SHOWN]
    )
    window = _window(scaler.last, "scaleDown")
    change = f"its scale-down window is {window:.0f} s: lengthen it" if window < _HESITATES_S else ""
    otherwise = (
        ""
        if change
        else f"its scale-down window of {window:.0f} s forbids that: its own log would tell what it computed"
    )
    yield Suspect(AUTOSCALER, act, flips[0][0][2].t_ns, _SIZES, seen=rows, change=change, otherwise=otherwise)


def _median_gap(flips: Sequence[tuple[Step, Step]]) -> int:
    gaps = sorted(b[2].t_ns - a[2].t_ns for a, b in flips)
    return gaps[len(gaps) // 2]


def _window(scaler: Json, way: str) -> float:
    behavior = scaler.get("spec", {}).get("behavior") or {}
    window = (behavior.get(way) or {}).get("stabilizationWindowSeconds")
    default = 300.0 if way == "scaleDown" else 0.0
    return default if window is None else float(window)


def _slow_up(case: Case, scaler: Life, target: Life) -> Iterator[Suspect]:
    """It could read more than it keeps, had room, and did nothing for longer than its periods and its window."""
    most = int(scaler.last.get("spec", {}).get("maxReplicas", 0))
    raises = [event.t_ns for before, after, event in replica_steps(target) if after > before]
    window_s = _window(scaler.last, "scaleUp")
    allowed = case.ns(_HESITATES_S + window_s)
    for need in needs(case.history):
        at = target.at(need.start_ns)
        if need.start_ns < case.start_ns or at is None or int(at.get("spec", {}).get("replicas", 1)) >= most:
            continue
        raised = next((t for t in raises if t >= need.start_ns - case.ns(2)), None)
        if raised is not None and any(need.end_ns < other.start_ns <= raised for other in needs(case.history)):
            raised = None  # it answers another need
        waited = (raised if raised is not None else need.end_ns) - need.start_ns
        if waited <= (allowed if raised is not None else case.ns(SUSTAINED_S + window_s)):
            continue
        size = int(at.get("spec", {}).get("replicas", 1))
        name, kept = next(iter(pod_metrics(scaler.last).items()), ("its metric", 0.0))
        verb = (
            f"raised the size only {case.span(waited)} after"
            if raised is not None
            else f"never raised the size, for {case.span(waited)} after"
        )
        act = f"{who(scaler)} {verb} it could read {name} above its target of {kept:g} (size {size} of at most {most})"
        said = listed(_conditions(scaler.at(need.end_ns) or scaler.last))
        rows = (
            Evidence("samples:custom.metrics", need.start_ns, f"{name} was readable above {kept:g} from here"),
            Evidence("samples:custom.metrics", need.end_ns, "and until here"),
            Evidence(
                f"objects:{scaler.seen[-1].index}",
                scaler.seen[-1].t_ns,
                f"it read {_read_at(scaler, need.end_ns)} and said: {said}",
            ),
        )
        yield Suspect(
            AUTOSCALER,
            act,
            need.start_ns,
            _UP,
            seen=rows,
            otherwise="its rights on the scale subresource may be missing: its controller's log would tell",
        )
        return


def _told_and_idle(case: Case, scaler: Life) -> Iterator[Suspect]:
    """By its own status it read more than it keeps, and did nothing: where the recorder could not read the metric."""
    idle = [need for need in needs_of(case.history, scaler) if not need.raised]
    long = [need for need in idle if need.end_ns - need.event.t_ns > case.ns(SUSTAINED_S)]
    if long:
        first = long[0]
        act = (
            f"{who(scaler)} never raised the size, for {case.span(first.end_ns - first.event.t_ns)} after it had read "
        )
        act += f"{first.read:g} where it keeps {first.kept:g}"
        row = Evidence(f"objects:{first.event.index}", first.event.t_ns, f"it read {first.read:g}, below its maximum")
        yield Suspect(AUTOSCALER, act, first.event.t_ns, _UP, seen=(row,))


def _conditions(scaler: Json) -> list[str]:
    return [
        f"{c['type']} {c.get('status')} ({c.get('reason')})" for c in scaler.get("status", {}).get("conditions") or ()
    ]


def _read_at(scaler: Life, t_ns: int) -> str:
    at = scaler.at(t_ns) or scaler.last
    said = [f"{name} {value:g}" for name in pod_metrics(at) if (value := told(at, name)) is not None]
    return listed(said) or "nothing"


def _never_down(case: Case, scaler: Life, target: Life) -> Iterator[Suspect]:
    """Above its floor although what it reads is below the target, its window is over and the metric is there."""
    if not case.number("scale_down", "late"):
        return
    window = case.ns(_window(scaler.last, "scaleDown") + _HESITATES_S)
    for e in excursions_of(case.history, target):
        end = e.back.t_ns if e.back else e.until_ns
        low = _low_since(case, scaler, e.over_ns, e.floor)
        if low is None or end - low <= window or condition(scaler.last, "ScalingActive").get("status") == "False":
            continue
        desired = scaler.last.get("status", {}).get("desiredReplicas")
        act = (
            f"{who(scaler)} kept {e.peak} replicas for {case.span(end - low)} although it read"
            f" {_read_at(scaler, end - 1)} against "
        )
        act += (
            f"a target of {', '.join(f'{v:g}' for v in pod_metrics(scaler.last).values())}: floor {e.floor},"
            f" desiredReplicas {desired}"
        )
        window_s = _window(scaler.last, "scaleDown")
        rows = tuple(
            Evidence(
                f"objects:{scaler.seen[-1].index}",
                scaler.seen[-1].t_ns,
                f"{c['type']} {c.get('status')} ({c.get('reason')}): {c.get('message')}",
            )
            for c in scaler.last.get("status", {}).get("conditions") or ()
        )
        yield Suspect(
            AUTOSCALER,
            act,
            low,
            _SIZES,
            scope=f"its scale-down window of {window_s:.0f} s was long over",
            seen=rows,
            otherwise=(
                "its log would tell what holds it: it computed a smaller size (see its conditions) and did not set it"
            ),
        )
        return


def _low_since(case: Case, scaler: Life, over_ns: int, floor: int) -> int | None:
    """Since when every reading asked for no more than the floor: None while one did, or where there is none."""
    since: int | None = None
    for name, kept in pod_metrics(scaler.last).items():
        read = [r for r in readings(case.history, name) if r.t_ns >= over_ns]
        high = [r.t_ns for r in read if sum(r.pods.values()) > kept * floor]
        low = next((r.t_ns for r in read if r.t_ns > max(high, default=-1)), None)
        if low is None:
            return None
        since = low if since is None else max(since, low)
    return since
