"""The recorder saw everything: no watch had a gap, no part of it failed, and no file of the history is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.checks.units import clock_s, count, listed
from harness.history.lives import Life, lives, node_of
from harness.history.tables import FAILED_MARK, ObjectEvent, ObjectEventType
from harness.verdict import Evidence, Finding, Role, Status

if TYPE_CHECKING:
    from harness.history.reader import History


def recorder_complete(history: History) -> Finding:
    """UNKNOWN when nothing was recorded at all, or pods on nodes and no Node, or ReplicaSets of Deployments and none of
    those: then nothing tells what befell them."""
    seen = sum(1 for event in history.objects if event.type is not ObjectEventType.GAP)
    gaps = history.gaps
    kinds = list(dict.fromkeys(gap.kind for gap in gaps))
    numbers = {"events": seen, "gaps": len(gaps), "blind_s_max": max((_blind_s(gap) for gap in gaps), default=0.0)}
    evidence = tuple(
        Evidence(f"objects:{gap.index}", gap.t_ns, f"blind for {gap.kind} for {_blind_s(gap):.2f} s: {gap.reason}")
        for gap in gaps
    )
    if gaps:
        status = Status.FAIL
        reasons = list(dict.fromkeys(gap.reason or "no reason given" for gap in gaps))
        sentence = f"the recording has {count(len(gaps), 'gap')} ({listed(kinds)}): {listed(reasons, 2)}"
    elif failed := [mark for mark in history.marks if mark.name == FAILED_MARK]:
        status = Status.FAIL
        sentence = f"a part of the recorder failed: {failed[0].value}: {failed[0].detail}"
        evidence = tuple(Evidence(f"marks:{mark.index}", mark.t_ns, f"{mark.value}: {mark.detail}") for mark in failed)
    elif not seen:
        status, sentence = Status.UNKNOWN, "the recorder saw no object at all"
    elif missing := _missing(history):
        status, sentence = Status.UNKNOWN, f"the recorder saw no {listed(missing)}, though there must be some"
    else:
        status, sentence = Status.PASS, f"{seen} object events recorded without a gap"
    return Finding("recorder_complete", Role.VALIDITY, status, sentence, seen, dict(numbers), evidence)


def _missing(history: History) -> list[str]:
    """Kinds that others name, and of which there is nothing."""
    named = {
        "Deployment": any(_is_of(life, "Deployment") for life in lives(history.objects, "ReplicaSet")),
        "Node": any(node_of(pod.last) for pod in lives(history.objects, "Pod")),
    }
    return [kind for kind, there in named.items() if there and not lives(history.objects, kind)]


def _is_of(life: Life, kind: str) -> bool:
    owners = life.last.get("metadata", {}).get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("kind") == kind for owner in owners)


def _blind_s(gap: ObjectEvent) -> float:
    return clock_s(gap.t_ns - (gap.since_ns or 0))
