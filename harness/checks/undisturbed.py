"""Pods that ask to be left alone (``karpenter.sh/do-not-disrupt``), and were taken by a drain all the same.

As of Karpenter v1.15 only a claim's terminationGracePeriod may override the annotation, near its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.departures import pods_scaled_away
from harness.checks.sight import blind
from harness.checks.story import moment, tell
from harness.checks.units import NS_PER_MS, count, listed
from harness.history.lives import ByName, Json, Life, condition, going, lives, node_of, node_of_claim
from harness.history.tables import ObjectEvent
from harness.verdict import Evidence

if TYPE_CHECKING:
    from harness.history.reader import History

KEEP = "karpenter.sh/do-not-disrupt"
_TAINT = "karpenter.sh/disrupted"
_DEADLINE = "karpenter.sh/nodeclaim-termination-timestamp"
_NEAR_NS = 250 * NS_PER_MS
_BLINDING = frozenset({"Pod", "Node", "NodeClaim"})


@dataclass(frozen=True, slots=True)
class Disturbed:
    pod: Life
    event: ObjectEvent
    node: str


def disturbed(history: History) -> list[Disturbed]:
    """Only what was seen: a gap around the moment leaves it out. An annotation that is a duration is not judged."""
    nodes = ByName(lives(history.objects, "Node"))
    claims = ByName(lives(history.objects, "NodeClaim"), node_of_claim)
    scaled = pods_scaled_away(history)
    found: list[Disturbed] = []
    for pod in lives(history.objects, "Pod"):
        event = pod.when(going)
        if event is None or pod.uid in scaled or not kept(event.object):
            continue
        node, claim = (named.at(node_of(pod.last), event.t_ns) for named in (nodes, claims))
        if node is None or (claim is not None and _bounded(claim)):
            continue
        reason = str(condition(event.object, "DisruptionTarget").get("reason") or "EvictionByEvictionAPI")
        drained = node.when(_tainted)
        if reason != "EvictionByEvictionAPI" or drained is None or drained.t_ns > event.t_ns + _NEAR_NS:
            continue
        if blind(history, _BLINDING, drained.t_ns - _NEAR_NS, event.t_ns + _NEAR_NS) is None:
            found.append(Disturbed(pod, event, node.name))
    return found


def undisturbed_hidden(history: History) -> ObjectEvent | None:
    """The gap that may hide how a pod went that asks to be left alone."""
    scaled = pods_scaled_away(history)
    went = (p for p in lives(history.objects, "Pod") if kept(p.last) and p.uid not in scaled)
    return blind(history, _BLINDING) if any(p.when(going) or p.gone for p in went) else None


def _bounded(claim: Life) -> bool:
    """Whether its drain ends by force at a time of its own."""
    return _DEADLINE in (claim.last.get("metadata", {}).get("annotations") or {})


def kept(obj: Json) -> bool:
    """Whether it must be left alone; a duration in the annotation's place is not judged."""
    return (obj.get("metadata", {}).get("annotations") or {}).get(KEEP) == "true"


def _tainted(node: Json) -> bool:
    return any(taint.get("key") == _TAINT for taint in node.get("spec", {}).get("taints") or ())


def disturbed_sentence(found: Sequence[Disturbed]) -> str:
    names = listed([f"{d.pod.name} on {d.node}" for d in found])
    return f"{count(len(found), 'pod')} taken by a drain in spite of {KEEP}: {names}"


def disturbed_story(history: History, found: Sequence[Disturbed]) -> str:
    first = found[0]
    return tell(
        promised=f"a pod with the annotation {KEEP} is left where it is",
        happened=disturbed_sentence(found),
        when=moment(history, first.event.t_ns),
        objects=[*(d.pod.name for d in found), *(d.node for d in found)],
        cause=f"{first.node} was given the taint {_TAINT} and drained while {first.pod.name} asked to be left alone",
        change="see why the provisioner takes nodes whose pods forbid it: its version, or somebody who drains by hand",
    )


def disturbed_rows(found: Sequence[Disturbed]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(f"objects:{d.event.index}", d.event.t_ns, f"{d.pod.name} asked to be left alone", {"node": d.node})
        for d in found
    )
