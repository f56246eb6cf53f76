"""What a run leaves behind: what is still not right when the recording ends, and since when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.gang import gangs_of
from harness.checks.units import listed, span_ns
from harness.history.lives import Json, Life, disrupted, going, lives, node_of, node_of_claim, ready, terminal
from harness.history.tables import ObjectEventType

if TYPE_CHECKING:
    from harness.history.reader import History

GRACE_S = 30.0
"""Scenario seconds beyond its own grace after which a terminating object is left over."""
_CORDON = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True)
class Left:
    """Something that is still not right when the recording ends, and since when."""

    kind: str
    name: str
    what: str
    since_ns: int
    ref: str


def leftovers(history: History, limit_ns: int, struck_ns: int, start_ns: int) -> tuple[list[Left], list[Left]]:
    """What is still wrong at the end and has been for as long as it may; and what was wrong already when the last fault
    was over (``start_ns``), but has time left. What began later and has time left is the system's daily work."""
    until = history.recorded_until_ns
    found = [*_nodes_left(history, struck_ns), *_pods_left(history), *_claims_left(history), *_gangs_left(history)]
    late = [left for left in found if until - max(left.since_ns, start_ns) > limit_ns]
    return late, [left for left in found if left not in late and left.since_ns <= start_ns]


def _nodes_left(history: History, struck_ns: int) -> list[Left]:
    found: list[Left] = []
    for node in lives(history.objects, "Node"):
        if node.gone is not None or _was_so_before(node, struck_ns):
            continue
        keys = [t.get("key") for t in node.last.get("spec", {}).get("taints") or ()]
        if disrupted(node.last):
            what = "is cordoned" if keys == [_CORDON] else f"has the taint {listed([str(k) for k in keys])}"
            found.append(_left(node, what, disrupted))
        elif not ready(node.last):
            found.append(_left(node, "is not Ready", lambda obj: not ready(obj)))
    return found


def _was_so_before(node: Life, struck_ns: int) -> bool:
    """It was cordoned or not Ready before anybody looked, and is so still: somebody else's work. What a list after a
    gap shows first may have come with the fault."""
    before = node.seen[0].type is ObjectEventType.LISTED and node.born_ns <= struck_ns
    return before and not any(ready(event.object) and not disrupted(event.object) for event in node.seen)


def _pods_left(history: History) -> list[Left]:
    """A pod on a node that is gone is orphaned; one that is going has its own grace first. A DaemonSet's pod is
    neither: it has no place but its node, so nothing is missing, and its object goes when the garbage collector comes
    round, in its own time (40 to 60 s of the clock with a real one, whatever the time scale)."""
    nodes = lives(history.objects, "Node")
    there = {node.name for node in nodes if node.gone is None}
    gone = {node.name: node.gone for node in nodes if node.gone is not None and node.name not in there}
    until = history.recorded_until_ns
    found: list[Left] = []
    for pod in lives(history.objects, "Pod"):
        on = node_of(pod.last)
        if pod.gone is not None or (terminal(pod.last) and not going(pod.last)):
            continue
        if on in gone:
            if _is_of_a_daemon_set(pod.last):
                continue
            what = f"is bound to {on}, which is gone"
            found.append(Left(pod.kind, pod.name, what, gone[on].t_ns, f"objects:{pod.seen[-1].index}"))
        elif going(pod.last):
            left = _left(pod, "is terminating beyond its grace", going)
            given = float(pod.last.get("metadata", {}).get("deletionGracePeriodSeconds") or 0)
            grace_s = given * history.run.kubelet_s + GRACE_S
            if until - left.since_ns > span_ns(grace_s, history.run.time_scale):
                found.append(left)
    return found


def _is_of_a_daemon_set(pod: Json) -> bool:
    owners = pod.get("metadata", {}).get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("kind") == "DaemonSet" for owner in owners)


def _claims_left(history: History) -> list[Left]:
    there = {node.name for node in lives(history.objects, "Node") if node.gone is None}
    return [
        _left(claim, "has no node", lambda obj: True)
        for claim in lives(history.objects, "NodeClaim")
        if claim.gone is None and node_of_claim(claim) not in there
    ]


def _gangs_left(history: History) -> list[Left]:
    until = history.recorded_until_ns
    return [
        Left(
            "PodGroup",
            g.group.name,
            f"holds {p.bound} of {g.need} members",
            p.start_ns,
            f"objects:{p.event.index}",
        )
        for g in gangs_of(history)
        for p in g.partials
        if g.group.gone is None and p.end_ns >= until
    ]


def _left(life: Life, what: str, is_so: Callable[[Json], bool]) -> Left:
    """Since the version from which on it has been so without a break."""
    since = life.seen[-1]
    for event in reversed(life.seen):
        if not is_so(event.object):
            break
        since = event
    return Left(life.kind, life.name, what, since.t_ns, f"objects:{since.index}")
