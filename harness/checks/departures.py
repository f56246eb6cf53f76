"""How pods of the workload went: when they were asked to, what their node was doing, how their containers ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from harness.checks.rows import Places, Request, Rows
from harness.checks.units import NS_PER_S
from harness.history.endpoints import endpoints_closed
from harness.history.lives import (
    ByName,
    Json,
    Life,
    bound_ns,
    condition,
    disrupted,
    going,
    lives,
    node_of,
    node_of_claim,
    owner_of,
    terminal,
    workload_pods,
)
from harness.history.recording import once
from harness.history.replica_sets import replica_steps
from harness.history.tables import FaultStage, ObjectEvent

if TYPE_CHECKING:
    from harness.history.reader import History

EVER_NS = 1 << 62
"""After all that is recorded."""
_OK = 200
_SCALED_NS = NS_PER_S
"""What comes this shortly after or before another thing was seen came with it."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When the streams of a pod were put at risk, and by what."""

    t_ns: int
    why: str
    scale_down: bool = False
    """By its own controller, not by a disruption."""


@dataclass(frozen=True, slots=True)
class NodeFate:
    """Times in history nanoseconds, None where it did not happen."""

    name: str
    noticed_ns: int | None
    """Tainted for disruption, or hit by an injected fault."""
    gone_ns: int | None
    """The Node object vanished: the cloud said before that the instance is no more."""
    silent_ns: int | None
    """Its Ready condition left True: the kubelet stopped, or reports trouble."""


def lost_ns(gone_ns: int, fell_ns: int | None) -> int:
    """When a node was lost: the API may hear of it long after its streams fell."""
    return gone_ns if fell_ns is None else min(gone_ns, fell_ns)


def ended_undrained(claims: Iterable[Life], node: str, fell_ns: int | None) -> ObjectEvent | None:
    """By which its NodeClaim said that its instance was being ended, and never that it was drained: not where the
    streams had fallen before, for then it only says that the instance is gone."""
    for claim in claims:
        if node_of_claim(claim) != node:
            continue
        ended = claim.when(lambda obj: condition(obj, "InstanceTerminating").get("status") == "True")
        drained = claim.when(lambda obj: condition(obj, "Drained").get("status") == "True")
        if ended is not None and drained is None and (fell_ns is None or ended.t_ns <= fell_ns + _SCALED_NS):
            return ended
    return None


@dataclass(frozen=True, slots=True)
class PodFate:
    """One pod and all that bears on its going."""

    life: Life
    asked: ObjectEvent | None
    """First version with a deletionTimestamp."""
    ended: ObjectEvent | None
    """First version in which its containers had ended."""
    node: NodeFate | None
    scaled_away: bool = False
    closed_ns: int | None = None
    """When its endpoint was last taken out of routing; None while it is in, or was never."""
    kubelet_s: float = 1.0
    """Scenario seconds that one second of its kubelet lasts."""

    @property
    def name(self) -> str:
        return self.life.name

    @property
    def node_name(self) -> str:
        return node_of(self.life.last)

    @property
    def grace_s(self) -> float:
        """What it was given when it was asked to go, in scenario seconds like all here."""
        asked = self.asked.object if self.asked else self.life.last
        written = asked.get("metadata", {}).get("deletionGracePeriodSeconds")
        return self.spec_grace_s if written is None else float(written) * self.kubelet_s

    @property
    def spec_grace_s(self) -> float:
        """What its spec says."""
        return float(self.life.last.get("spec", {}).get("terminationGracePeriodSeconds", 30)) * self.kubelet_s

    @property
    def pre_stop_s(self) -> float:
        sleeps = [
            float((((c.get("lifecycle") or {}).get("preStop") or {}).get("sleep") or {}).get("seconds", 0))
            for c in self.life.last.get("spec", {}).get("containers") or ()
        ]
        return max(sleeps, default=0.0) * self.kubelet_s

    @property
    def alive_until_ns(self) -> int | None:
        ends = [event.t_ns for event in (self.ended, self.life.gone) if event is not None]
        return min(ends, default=None)

    def moments(self) -> list[Moment]:
        """When streams on this pod were put at risk, in order; only while it lived."""
        found: list[Moment] = []
        if self.asked is not None:
            found.append(Moment(self.asked.t_ns, _ASKED[self.scaled_away], self.scaled_away))
        if self.node is not None and self.node.noticed_ns is not None:
            found.append(Moment(self.node.noticed_ns, "its node was announced to go"))
        if self.node is not None and self.node.gone_ns is not None:
            found.append(Moment(self.node.gone_ns, "its node was lost"))
        until = self.alive_until_ns
        alive = [m for m in found if m.t_ns >= self.life.born_ns and (until is None or m.t_ns <= until)]
        return sorted(alive, key=lambda moment: moment.t_ns)


_ASKED = {False: "asked to go", True: "scaled away"}


class Fates(dict[str, PodFate]):
    """The pods of the workload by name: the last of each. A LeaderWorkerSet's or a StatefulSet's come again under their
    names, so what is asked of all of them goes by ``lives``, and what is asked of a request's by ``of``."""

    def __init__(self, lives: Sequence[PodFate]) -> None:
        """In the order in which they came."""
        super().__init__((fate.name, fate) for fate in lives)
        self.lives = tuple(lives)
        self._named: dict[str, list[PodFate]] = {}
        for fate in lives:
            self._named.setdefault(fate.name, []).append(fate)

    def of(self, row: Request) -> PodFate | None:
        """The pod that a request was on: the one that was there when it was answered, or else the first of its name
        that was not gone when it was sent. Who says that nobody answers, as a gateway does, says nothing of who would
        have."""
        named = self._named.get(row.pod or "", ())
        if len(named) < 2:
            return named[0] if named else None
        answered_ns = row.headers_ns if row.status == _OK else row.first_token_ns
        by_ns = row.end_ns if answered_ns is None else answered_ns
        came = [fate for fate in named if by_ns is None or fate.life.born_ns <= by_ns] or [named[0]]
        if answered_ns is not None or row.sent_ns is None:
            return came[-1]
        gone = ((fate, fate.life.gone) for fate in came)
        return next((fate for fate, event in gone if event is None or event.t_ns >= row.sent_ns), came[-1])

    def places(self, table: Rows) -> Iterator[tuple[PodFate, Places]]:
        """Each pod with where its requests stand."""
        for pod, places in table.places("pod").items():
            named = self._named.get(pod, ())
            if len(named) == 1:
                yield named[0], places
            elif named:
                on = [self.of(row) for row in table.where(places)]
                yield from ((fate, places[np.array([other is fate for other in on])]) for fate in named)

    def span_ns(self, fate: PodFate) -> tuple[int, int]:
        """From when until when what was said of its name was said of it."""
        named = self._named[fate.name]
        at = next(n for n, other in enumerate(named) if other is fate)
        since_ns = fate.life.born_ns if at else 0
        return since_ns, named[at + 1].life.born_ns if at + 1 < len(named) else EVER_NS


@once
def pod_fates(history: History) -> Fates:
    nodes, known = ByName(lives(history.objects, "Node")), node_fates(history)
    scaled, closed = pods_scaled_away(history), endpoints_closed(history)
    fates: list[PodFate] = []
    for pod in sorted(workload_pods(history), key=lambda pod: pod.born_ns):
        asked = pod.when(going)
        away = asked is not None and pod.uid in scaled
        # One that was there already when its node came again fell with the node that it was bound to.
        node = nodes.at(node_of(pod.last), bound_ns(pod))
        fate = known[node.uid] if node else None
        kubelet_s = history.run.kubelet_s
        fates.append(PodFate(pod, asked, pod.when(terminal), fate, away, closed.get(pod.uid), kubelet_s))
    return Fates(fates)


@once
def pods_scaled_away(history: History) -> frozenset[str]:
    """Uids of pods that a controller took because fewer are wanted, so that no disruption did.

    Nothing in a deleted pod says who deleted it. But a step down by n explains n pods at most, and of those that went
    at that moment the ones that the ReplicaSet's own events name, and then the nearest: a drain that deletes pods just
    then is not excused. A Deployment's size counts where there is one, for a rollout that moves replicas from one set
    to the next is no scaling down.
    """
    deployments = {life.uid: life for life in lives(history.objects, "Deployment")}
    left: dict[str, list[tuple[ObjectEvent, Life]]] = {}
    for pod in lives(history.objects, "Pod"):
        went = pod.when(going) or pod.gone
        if went is not None and not condition(went.object, "DisruptionTarget"):
            left.setdefault(owner_of(pod.last), []).append((went, pod))
    named = _named_by_their_sets(history) if left else frozenset()
    found: set[str] = set()
    for life in lives(history.objects, "ReplicaSet"):
        for before, after, step in replica_steps(deployments.get(owner_of(life.last), life)):
            near = [(w, p) for w, p in left.get(life.uid, ()) if abs(w.t_ns - step.t_ns) <= _SCALED_NS]
            near = [(w, p) for w, p in near if p.uid not in found]
            near.sort(key=lambda each: (each[1].name not in named, abs(each[0].t_ns - step.t_ns), each[0].index))
            found |= {pod.uid for _, pod in near[: max(0, before - after)]}
    return frozenset(found)


def _named_by_their_sets(history: History) -> frozenset[str]:
    """Pods that a ReplicaSet says it deleted. Events may be dropped, so they only choose among candidates."""
    events = (event.object for event in history.objects.of_kind("Event"))
    said = (event for event in events if event.get("reason") == "SuccessfulDelete")
    return frozenset(str(event.get("message") or event.get("note") or "").rpartition(" ")[2] for event in said)


def node_fates(history: History) -> dict[str, NodeFate]:
    """By the node's uid: a fault struck the one that had the name then."""
    nodes = lives(history.objects, "Node")
    named = ByName(nodes)
    struck: dict[str, int] = {}
    for event in history.faults:
        if not event.disruptive:
            continue
        for target in event.targets:
            if event.stage is FaultStage.INJECTED and (node := named.at(target, event.t_ns)) is not None:
                struck.setdefault(node.uid, event.t_ns)
    fates: dict[str, NodeFate] = {}
    for life in nodes:
        tainted, silent = life.when(disrupted), life.when(_silent)
        noticed = [t for t in (tainted.t_ns if tainted else None, struck.get(life.uid)) if t is not None]
        fates[life.uid] = NodeFate(life.name, min(noticed, default=None), _t(life.gone), _t(silent))
    return fates


def _silent(node: Json) -> bool:
    return condition(node, "Ready").get("status") == "Unknown"


def exit_code(pod: Json) -> int | None:
    """Of the first container that ended."""
    for status in pod.get("status", {}).get("containerStatuses") or ():
        for state in (status.get("state") or {}, status.get("lastState") or {}):
            if "terminated" in state:
                return int(state["terminated"].get("exitCode", 0))
    return None


def restarted(pod: Json) -> bool:
    return any(int(s.get("restartCount", 0)) > 0 for s in pod.get("status", {}).get("containerStatuses") or ())


def _t(event: ObjectEvent | None) -> int | None:
    return None if event is None else event.t_ns
