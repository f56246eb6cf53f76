"""A ReplicaSet that stays short of pods: its controller makes what is missing at once, or says why it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.checks.units import count, listed
from harness.diagnosis.case import Case
from harness.diagnosis.suspect import REPLICA_SETS, Suspect
from harness.history.lives import Life, condition, lives, owner_of
from harness.history.replica_sets import leaving, replica_steps
from harness.verdict import Evidence

_SHORT_S = 60.0
"""Scenario seconds: a controller that is asked makes a pod within one."""
_BREAKS = frozenset({"scale_up", "recovery", "graceful_drain", "gang", "slo", "baseline"})


@dataclass(frozen=True, slots=True)
class Short:
    """A time in which a ReplicaSet had fewer pods than its size; ``lost`` where a pod that went opened it."""

    owner: Life
    start_ns: int
    end_ns: int
    missing: int
    lost: bool
    refusal: str


def short_of_pods(case: Case) -> list[Short]:
    found: list[Short] = []
    until = case.history.recorded_until_ns
    for owner in lives(case.history.objects, "ReplicaSet"):
        pods = [pod for pod in case.of("Pod") if owner_of(pod.last) == owner.uid]
        steps = [(event.t_ns, after - before, "size") for before, after, event in replica_steps(owner)]
        if not steps or steps[0][0] > owner.born_ns:
            steps.insert(0, (owner.born_ns, int(owner.seen[0].object.get("spec", {}).get("replicas", 1)), "size"))
        for pod in pods:
            steps.append((pod.born_ns, -1, "came"))
            if (left := leaving(pod)) is not None:
                steps.append((left.t_ns, 1, "left"))
        end = owner.gone.t_ns if owner.gone else until
        missing, start, lost, most = 0, 0, False, 0
        for t_ns, change, what in [*sorted(steps), (end, -(1 << 30), "end")]:
            was = missing
            missing += change
            if was > 0 and (what == "came" or missing <= 0):
                if min(t_ns, end) - start > case.ns(_SHORT_S):
                    found.append(Short(owner, start, min(t_ns, end), most, lost, _refusal(owner, start, t_ns)))
                start, most, lost = t_ns, max(0, missing), lost and missing > 0
            if missing > 0:
                if was <= 0:
                    start, lost, most = t_ns, what == "left", 0
                lost, most = lost or what == "left", max(most, missing)
    return [short for short in found if short.end_ns > case.start_ns]


def _refusal(owner: Life, start_ns: int, end_ns: int) -> str:
    for event in owner.seen:
        said = str(condition(event.object, "ReplicaFailure").get("message") or "")
        if said and start_ns <= event.t_ns <= end_ns:
            return said
    return ""


def replica_sets(case: Case) -> Iterator[Suspect]:
    short = short_of_pods(case)
    if not short:
        return
    first = min(short, key=lambda each: each.start_ns)
    missing = sum(each.missing for each in short)
    owners = list(dict.fromkeys(each.owner.name for each in short))
    rows = tuple(
        Evidence(
            f"objects:{each.owner.seen[-1].index}",
            each.start_ns,
            f"{each.owner.name} lacked {count(each.missing, 'pod')} for {case.span(each.end_ns - each.start_ns)}"
            f"{' after it lost some' if each.lost else ''}; it said: {each.refusal or 'nothing'}",
        )
        for each in short
    )
    if first.refusal:
        by = "an admission webhook" if "webhook" in first.refusal else "the namespace's quota"
        act = f"refused {count(missing, 'pod')} of {listed(owners)}: {first.refusal}"
        yield Suspect(
            by, act, first.start_ns, _BREAKS, seen=rows, change="raise it, or make room, before the size may rise"
        )
        return
    lost = sum(each.missing for each in short if each.lost)
    which = "in the place of lost ones" if lost == missing else "that were missing"
    act = (
        f"did not make {count(missing, 'pod')} {which}, of {listed(owners)}, for"
        f" {case.span(max(e.end_ns - e.start_ns for e in short))}"
    )
    yield Suspect(
        REPLICA_SETS,
        act,
        first.start_ns,
        _BREAKS,
        scope=_contrast(case, short),
        seen=rows,
        otherwise=(
            "a quota or an admission webhook would leave ReplicaFailure on the ReplicaSet and FailedCreate Events,"
            " and none was recorded; the controller's log would tell"
        ),
    )


def _contrast(case: Case, short: list[Short]) -> str:
    """What it did make at the same time."""
    lost = [each for each in short if each.lost]
    start = min(each.start_ns for each in short)
    owners = {each.owner.uid for each in short}
    born = [p.born_ns for p in case.of("Pod") if owner_of(p.last) in owners]
    later, before = sum(1 for t in born if t > start), sum(1 for t in born if t <= start)
    kind = (
        "replacements of pods that went"
        if len(lost) == len(short)
        else "pods that were added"
        if not lost
        else "pods that were added, and replacements"
    )
    return f"hit: {kind}; it had made {count(before, 'pod')} of theirs before, and made {later} after"
