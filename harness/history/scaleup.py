"""The marks T0 to T8 of every replica that came during the load, dated by what the watches received (design, 6).

A ReplicaSet creates a pod either because its ``spec.replicas`` was raised (an *added* replica, whose clock starts at
the load step, or at a later need where that of the step was over) or because one of its pods began to go (a
*replacement*, whose clock starts at its predecessor's deletionTimestamp). Raises and vacancies are handed to the new
pods in order of time.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from harness.history.autoscaler import needs, readable_ns
from harness.history.endpoints import endpoints_of
from harness.history.lives import (
    ByName,
    Life,
    bound_ns,
    condition,
    labels_of,
    lives,
    node_of,
    node_of_claim,
    owner_of,
    ready,
    running,
    unschedulable,
    usable,
    workload_pods,
)
from harness.history.recording import once
from harness.history.replica_sets import SETTLE_NS, Origin, Slot, assign, leaving, replica_steps
from harness.history.tables import ObjectEvent
from harness.history.waiting import Waiting, never_created, refused, waiting_in

if TYPE_CHECKING:
    from harness.history.reader import History

LOAD_STEP = "load_step"
"""The supervisor's mark at the planned time of each step of the load."""
SERVICE_LABEL = "kubernetes.io/service-name"
_FOR_CLAIM = re.compile(r"nodeclaim/([^\s,]+)")
"""Karpenter's Event at a pod: "Pod should schedule on: nodeclaim/NAME", and the node's name once it is there."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One mark of one replica. ``needed`` is False where it does not apply; ``note`` says why, or attributes it."""

    t_ns: int | None
    note: str = ""
    ref: str = ""
    needed: bool = True
    unseen: bool = False
    """Not needed to tell the replica's course, for what came later shows it; but it was, and nobody saw when."""

    @property
    def missed(self) -> bool:
        return self.needed and self.t_ns is None


STAGES = ("T0", "T0'", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8")


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica that came during the load. ``pod`` is empty when it was decided but no pod was ever seen."""

    origin: Origin
    pod: str
    node: str
    predecessor: str
    marks: dict[str, Stage] = field(default_factory=dict)
    waits_for: str = ""
    """In people's words, the first thing it still waited for; empty when it served."""
    withdrawn_ns: int | None = None
    """When its pod was itself asked to go before it had served, or was not wanted any more before it was made."""
    created_ns: int | None = None
    """When its pod was first seen: between T1 and it lie quotas and whatever admits pods."""

    @property
    def start_ns(self) -> int | None:
        return self.marks["T0"].t_ns

    @property
    def served_ns(self) -> int | None:
        return self.marks["T8"].t_ns


@once
def replicas_that_came(history: History) -> tuple[Replica, ...]:
    """Added replicas and replacements, in the order in which they were decided."""
    dating = _dating(history)
    return tuple(dating.replica(slot, pod) for slot, pod in assign(history))


def waiting_at(history: History, replica: Replica, t_ns: int) -> Waiting:
    """What a replica that does not serve before ``t_ns`` waits for then, or when it is withdrawn before."""
    at_ns = t_ns if replica.withdrawn_ns is None else min(t_ns, replica.withdrawn_ns - 1)
    return _dating(history).waiting(replica, at_ns)


@once
def _dating(history: History) -> _Dating:
    return _Dating(history)


class _Dating:
    """What all replicas of one history share, read once."""

    def __init__(self, history: History) -> None:
        run = history.run
        self.time_scale = run.time_scale
        self.load_steps = [mark for mark in history.marks if mark.name == LOAD_STEP]
        self.nodes = ByName(lives(history.objects, "Node"))
        self.claims = lives(history.objects, "NodeClaim")
        self.pods = ByName(workload_pods(history))
        self.refusals = sorted(found for claim in self.claims for found in refused(claim))
        self.unmade = _unmade(history)
        self.end_ns = history.recorded_until_ns
        self.claim_of = ByName(self.claims, node_of_claim)
        self.raises = {life.uid: _raises(life) for life in lives(history.objects, "Deployment")}
        self.routed = _first_ready_endpoints(history)
        self.pulled = {pod: said[0][1] for pod, said in _events_of(history, "Pulled").items()}
        self.unhealthy = _events_of(history, "Unhealthy")
        self.nominated = _events_of(history, "Nominated")
        self.first_tokens = _first_tokens(history)
        self.needs = needs(history)
        self.need_starts = [need.start_ns for need in self.needs]
        self.readable = readable_ns(self.needs)

    def replica(self, slot: Slot, pod: Life | None) -> Replica:
        decided = self._decided(slot)
        marks = dict(self._start(slot, decided.t_ns or slot.t_ns))
        marks["T1"] = decided
        if pod is None:
            marks |= {name: Stage(None) for name in STAGES[3:]}
            replica = Replica(slot.origin, "", "", slot.predecessor, marks, "-", slot.withdrawn_ns)
            return replace(replica, waits_for=self.waiting(replica, self.end_ns).words)
        node = node_of(pod.last)
        marks |= self._node_stages(pod, node)
        marks |= self._pod_stages(pod)
        left = leaving(pod)
        served = marks["T8"].t_ns
        withdrawn = left.t_ns if left and (served is None or left.t_ns < served) else None
        replica = Replica(slot.origin, pod.name, node, slot.predecessor, marks, "", withdrawn, pod.born_ns)
        if served is not None:
            return replica
        at_ns = self.end_ns if withdrawn is None else withdrawn - 1
        return replace(replica, waits_for=self.waiting(replica, at_ns).words)

    def _start(self, slot: Slot, decided_ns: int) -> dict[str, Stage]:
        if slot.origin is Origin.REPLACEMENT:
            note = f"{slot.predecessor} began to go"
            return {
                "T0": Stage(slot.t_ns, note, _ref(slot.event)),
                "T0'": Stage(None, "a replacement waits for no autoscaler", needed=False),
            }
        step = next((mark for mark in reversed(self.load_steps) if mark.t_ns <= decided_ns), None)
        if step is None:
            return {"T0": Stage(None, "no load step was marked before it"), "T0'": Stage(None)}
        starts = _within(self.need_starts, step.t_ns, decided_ns)
        if len(starts) > 1:  # what the step asked for was over before: this replica answers what came later
            note = "the need of the load step had ended; a new one could be read from here"
            return {"T0": Stage(starts[-1], note, "samples:custom.metrics"), "T0'": Stage(starts[-1])}
        readable = next(iter(_within(self.readable, step.t_ns, decided_ns)), None)
        note = "" if readable else "the recorder's scrapes did not catch the metric above its target"
        return {
            "T0": Stage(step.t_ns, step.detail, f"marks:{step.index}"),
            "T0'": Stage(readable, note, needed=readable is not None, unseen=readable is None),
        }

    def _decided(self, slot: Slot) -> Stage:
        """The Deployment's raise where it explains the ReplicaSet's, since that is what the autoscaler wrote."""
        if slot.origin is Origin.REPLACEMENT:
            return Stage(slot.t_ns, "the ReplicaSet replaces what goes", _ref(slot.event))
        raises = self.raises.get(owner_of(slot.event.object), []) if slot.event else []
        before = bisect_right(raises, slot.t_ns + SETTLE_NS, key=lambda event: event.t_ns)
        if not before:
            return Stage(slot.t_ns, "", _ref(slot.event))
        latest = raises[before - 1]
        return Stage(min(latest.t_ns, slot.t_ns), f"to {latest.object['spec']['replicas']} replicas", _ref(latest))

    def _node_stages(self, pod: Life, node: str) -> dict[str, Stage]:
        refused = pod.when(unschedulable)
        if refused is None:
            if not node:
                return {name: Stage(None) for name in ("T2", "T3", "T4", "T5")}
            why = f"there was room on {node} at once"
            return {name: Stage(None, why, needed=False) for name in ("T2", "T3", "T4", "T5")}
        by_ns = bound_ns(pod) if node else self.end_ns
        claim = self._claim(pod.name, node, refused.t_ns, by_ns)
        name = node or _node_name(claim)
        life = self.nodes.at(name, by_ns)
        fit = life.when(lambda node: usable(node, pod.last)) if life else None
        message = str(condition(refused.object, "PodScheduled").get("message") or "")
        marks = {"T2": Stage(refused.t_ns, message, _ref(refused))}
        for mark, event, what in (
            ("T3", claim.seen[0] if claim else None, "decided"),
            ("T4", life.seen[0] if life else None, "there"),
            ("T5", fit, "usable"),
        ):
            known = event if event or mark != "T3" or life is None else life.seen[0]
            if known is not None and known.t_ns <= refused.t_ns:
                marks[mark] = Stage(None, f"{name} was {what} already when the pod found no room", needed=False)
            elif event is None and mark == "T3" and life is not None:
                marks[mark] = Stage(None, f"{name} came without a NodeClaim", needed=False)
            elif event is None and mark == "T5" and node:
                marks[mark] = Stage(None, f"the pod was bound before {name} was seen usable", needed=False, unseen=True)
            else:
                marks[mark] = Stage(event.t_ns, name, _ref(event)) if event else Stage(None)
        return marks

    def _claim(self, pod: str, node: str, since_ns: int, by_ns: int) -> Life | None:
        """The node's claim; for a pod without a node, that which Karpenter last said it is for, or else the latest made
        since it found no room, and by then."""
        if node:
            return self.claim_of.at(node, by_ns)
        said = next((words for t, words in reversed(self.nominated.get(pod, [])) if t <= by_ns), "")
        named = found[1] if (found := _FOR_CLAIM.search(said)) else ""
        there = [c for c in self.claims if c.born_ns <= by_ns and (c.gone is None or c.gone.t_ns > by_ns)]
        since = (c for c in reversed(self.claims) if since_ns <= c.born_ns <= by_ns)
        return next((c for c in there if c.name == named), None) or next(since, None)

    def _pod_stages(self, pod: Life) -> dict[str, Stage]:
        started, warm = pod.when(running), pod.when(ready)
        routed, token_ns = self.routed.get(pod.uid), self._first_token_ns(pod)
        served = Stage(None)
        if warm and routed and token_ns is not None:
            parts = {"Ready": warm.t_ns, "routed": routed.t_ns, "first token": token_ns}
            last = max(parts, key=lambda part: parts[part])
            served = Stage(parts[last], f"{last} came last", _ref(routed))
        return {
            "T6": Stage(started.t_ns, self.pulled.get(pod.name, ""), _ref(started)) if started else Stage(None),
            # Nothing of a pod says when its weights are loaded; the first passed readiness probe is the first proof.
            "T7": Stage(warm.t_ns, "first passed readiness probe", _ref(warm)) if warm else Stage(None),
            "T8": served,
        }

    def _first_token_ns(self, pod: Life) -> int | None:
        """Of what came again under its name, no token of those before it, or after."""
        again = self.pods.during(pod.name, 0, self.end_ns)
        at = next((n for n, other in enumerate(again) if other.uid == pod.uid), 0)
        since_ns = pod.born_ns if at else 0
        token_ns = next((t for t in self.first_tokens.get(pod.name, ()) if t >= since_ns), None)
        over = token_ns is not None and at + 1 < len(again) and token_ns >= again[at + 1].born_ns
        return None if over else token_ns

    def waiting(self, replica: Replica, at_ns: int) -> Waiting:
        pod = self.pods.at(replica.pod, replica.created_ns or 0)
        if pod is None:
            made_ns = replica.marks["T1"].t_ns or 0
            return never_created(next((said for t, said in reversed(self.unmade) if made_ns <= t <= at_ns), ""))
        marks, reached = replica.marks, pod.at(at_ns) or pod.last
        stage = next((n for n in STAGES[3:] if marks[n].needed and not _by(marks[n].t_ns, at_ns)), "T8")
        since_ns = marks["T2"].t_ns or pod.born_ns
        node = node_of(reached)
        claim = self._claim(pod.name, node, since_ns, at_ns)
        life = self.nodes.at(node or _node_name(claim), at_ns)
        said = [words for t, words in self.refusals if since_ns - SETTLE_NS <= t <= at_ns]
        return waiting_in(
            stage,
            reached,
            claim.at(at_ns) if claim else None,
            life.at(at_ns) if life else None,
            said[-1] if said else "",
            next((words for t, words in reversed(self.unhealthy.get(pod.name, [])) if t <= at_ns), ""),
        )


def _by(t_ns: int | None, at_ns: int) -> bool:
    return t_ns is not None and t_ns <= at_ns


def _raises(life: Life) -> list[ObjectEvent]:
    """By their time. Of those received in one moment the first is the one that counts."""
    last: dict[int, ObjectEvent] = {}
    for before, after, event in replica_steps(life):
        if after > before:
            last.setdefault(event.t_ns, event)
    return [last[t_ns] for t_ns in sorted(last)]


def _within(ordered: list[int], first: int, last: int) -> list[int]:
    return ordered[bisect_left(ordered, first) : bisect_right(ordered, last)]


def _node_name(claim: Life | None) -> str:
    return node_of_claim(claim) if claim else ""


def _unmade(history: History) -> list[tuple[int, str]]:
    """When ReplicaSets said that they could not make a pod, and why."""
    said = (
        (event.t_ns, str(condition(event.object, "ReplicaFailure").get("message") or ""))
        for life in lives(history.objects, "ReplicaSet")
        for event in life.seen
    )
    return sorted((t, words) for t, words in said if words)


def _first_ready_endpoints(history: History) -> dict[str, ObjectEvent]:
    """The first event in which a slice of the workload's service says a pod is ready, by the pod's uid."""
    service = history.run.workload.get("service")
    pods = ByName(lives(history.objects, "Pod"))
    first: dict[str, ObjectEvent] = {}
    for life in lives(history.objects, "EndpointSlice"):
        if service and labels_of(life.last).get(SERVICE_LABEL, service) != service:
            continue
        for event in life.seen:
            for pod in endpoints_of(event, pods, lambda conditions: bool(conditions.get("ready"))):
                first.setdefault(pod, event)
    return first


def _events_of(history: History, reason: str) -> dict[str, list[tuple[int, str]]]:
    """What events of one reason said and when, by the object's name. Events may be dropped, so they only attribute."""
    found: dict[str, list[tuple[int, str]]] = {}
    for event in history.objects.of_kind("Event"):
        if event.object.get("reason") == reason:
            about = event.object.get("involvedObject") or event.object.get("regarding") or {}
            message = event.object.get("message") or event.object.get("note") or ""
            found.setdefault(str(about.get("name", "")), []).append((event.t_ns, str(message)))
    return found


def _first_tokens(history: History) -> dict[str, list[int]]:
    """When requests had their first token, by the pod's name, in order."""
    table = history.requests[["pod", "first_token_ns"]].dropna().sort_values("first_token_ns")
    return {str(pod): [int(t) for t in own] for pod, own in table.groupby("pod")["first_token_ns"]}


def _ref(event: ObjectEvent | None) -> str:
    return f"objects:{event.index}" if event else ""
