"""After the last fault the system is steady again within a bound, and nothing of the fault is left over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.gang import gangs_of, holds
from harness.checks.leftovers import Left, leftovers
from harness.checks.no_room import NoRoom
from harness.checks.scale_down import targets_of
from harness.checks.sight import blind
from harness.checks.silences import silences
from harness.checks.story import clock, moment, tell
from harness.checks.units import both, count, listed, scenario_s, span_ns
from harness.history.gpus import changes
from harness.history.lives import (
    Json,
    Life,
    disrupted,
    going,
    lives,
    name_of,
    ready,
    workload_pods,
)
from harness.history.tables import FaultEvent, FaultStage
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import RecoverySpec

NEEDS = ("load_offered", "machine_did_not_stall", "steady_before")
_BLINDING = frozenset({"Pod", "Node", "Deployment", "ReplicaSet", "PodGroup", "NodeClaim"})
_OVER = frozenset({FaultStage.ENDED, FaultStage.HEALED, FaultStage.FAILED})
_NOTHING_LEFT = "nothing_left"
"""What the heal of a fault says that it does, where what was lost is the system's to replace."""


@dataclass(frozen=True, slots=True)
class Return:
    """``steady_ns`` is when the system was steady for long enough; ``wants`` what it still lacked last."""

    start_ns: int
    steady_ns: int | None
    wants: str


def recovery(history: History, spec: RecoverySpec) -> Finding:
    """Steady: every wanted pod is ready, none found no room, every node that stays is Ready, every gang is whole, and
    no pod is Ready in name only: one for which requests waited in vain (``graceful_drain`` tells them) serves nobody.
    Room must be found by pods of the workload's namespace, of what this run itself applied, and of others that the
    fault drove out: not by those that others bring meanwhile, or that waited before.

    The clock starts when the last disruptive fault is over (its own course, else its heal; one that leaves nothing to
    undo is over once it was seen). Left over is what is still there at the recording's end and had its time: taints and
    cordons that came during it, nodes that are not Ready any more, pods on nodes that are gone or that end beyond their
    grace, claims without a node, gangs that are partly bound.

    UNKNOWN when no disruptive fault came to its end, or one of them did not, when the recording ends before the time
    was up (also that of what was wrong already when the last fault was over, and still is), and when the recorder was
    blind meanwhile. Where nothing recorded says how many replicas are wanted (pods of no Deployment), all that were
    ready when the first fault struck are to be so again, and it is unknown when they are not, or none was.
    """
    ends = fault_ends(history)
    if not ends:
        sentence = "no disruptive fault came to its end, so there was nothing to recover from"
        return Finding("recovery", Role.CHECK, Status.UNKNOWN, sentence, 0, needs=NEEDS)
    scale = history.run.time_scale
    start_ns = max(event.t_ns for event in ends)
    hold_ns = span_ns(spec.hold_s_min, scale)
    back = heard_again(history, returned(history, start_ns, hold_ns), hold_ns)
    left, undecided = leftovers(history, span_ns(spec.steady_s_max, scale), _first_ns(history), start_ns)
    due_ns = start_ns + span_ns(spec.steady_s_max, scale)
    late = back.steady_ns is None or back.steady_ns > due_ns
    early_end = back.steady_ns is None and history.recorded_until_ns < due_ns
    gap = blind(history, _BLINDING, start_ns)
    open_ = never_over(history, ends)
    unsure = ""
    were = None if late else _ready_when_struck(history)
    if were == 0:
        unsure = "no pod was ready when the first fault struck"
    elif were is not None:
        back, sure = heard_again(history, returned(history, start_ns, hold_ns, were), hold_ns), back
        if back.steady_ns is None or back.steady_ns > due_ns:
            back, unsure = sure, back.wants or f"not all of the {were} pods were ready again in time"
    wrong = _wrong(history, spec, back, late and not early_end, left)
    if open_:
        status, sentence = Status.UNKNOWN, f"{listed(open_)} was never over, so nothing had to recover yet"
    elif wrong and gap is None:
        status, sentence = Status.FAIL, "; ".join(wrong)
    elif gap is not None:
        status, sentence = Status.UNKNOWN, f"the recorder was blind for {gap.kind} after the last fault was over"
    elif early_end:
        status, sentence = Status.UNKNOWN, f"{back.wants} when the recording ended, before its time was up"
    elif undecided:
        said = listed([f"{item.kind} {item.name} {item.what}" for item in undecided])
        status, sentence = Status.UNKNOWN, f"{said} when the recording ended, before its time was up"
    elif unsure:
        status, sentence = Status.UNKNOWN, f"{unsure}, and nothing recorded says how many are wanted"
    else:
        took = both((back.steady_ns or start_ns) - start_ns, scale)
        status = Status.PASS
        limit = f"limit {spec.steady_s_max:.0f} s"
        over = f"after the last of {count(len(ends), 'fault')} was over ({limit})"
        sentence = f"steady {took} {over}, nothing left over"
    steady_ns = None if back.steady_ns is None else back.steady_ns - start_ns
    numbers: dict[str, Value] = {
        "steady_s_max": spec.steady_s_max,
        "faults_over": len(ends),
        "steady_s": None if steady_ns is None else scenario_s(steady_ns, scale),
        "left_over": len(left),
    }
    story = _story(history, spec, back, left, wrong) if status is Status.FAIL else ""
    rows = _evidence(ends, back, left or undecided)
    return Finding("recovery", Role.CHECK, status, sentence, len(ends), numbers, rows, NEEDS, story=story)


def never_over(history: History, ends: Sequence[FaultEvent]) -> list[str]:
    """Disruptive faults that were injected and that nothing ended."""
    over = {event.fault_id for event in ends}
    return [event.fault_id for event in _struck(history) if event.fault_id not in over]


def _struck(history: History) -> list[FaultEvent]:
    return [f for f in history.faults if f.disruptive and f.stage is FaultStage.INJECTED]


def _first_ns(history: History) -> int:
    """When the first of them was to strike."""
    disruptive = {event.fault_id for event in _struck(history)}
    return min((event.t_ns for event in history.faults if event.fault_id in disruptive), default=0)


def _ready_when_struck(history: History) -> int | None:
    """How many pods were ready when the first fault was to strike; None where an object says how many are wanted."""
    if targets_of(history):
        return None
    struck_ns = _first_ns(history)
    there = [pod.at(struck_ns) for pod in workload_pods(history)]
    return sum(1 for obj in there if obj is not None and ready(obj) and not going(obj))


def fault_ends(history: History) -> list[FaultEvent]:
    """For each injected disruptive fault the first event by which it was over. One that leaves nothing to undo and has
    no course of its own is over once it was seen: its heal, at the end of the run, heals nothing."""
    injected = {event.fault_id for event in _struck(history)}
    over: dict[str, FaultEvent] = {}
    seen: dict[str, FaultEvent] = {}
    for event in sorted(history.faults, key=lambda f: f.t_ns):
        if event.fault_id not in injected:
            continue
        if event.stage is FaultStage.OBSERVED:
            seen[event.fault_id] = event
        if event.stage is FaultStage.HEALING and set(event.detail.split(", ")) == {_NOTHING_LEFT}:
            over.setdefault(event.fault_id, seen.get(event.fault_id, event))
        if event.stage in _OVER:
            over.setdefault(event.fault_id, event)
    return list(over.values())


def returned(history: History, start_ns: int, hold_ns: int, wanted: int = 0) -> Return:
    """Walks through all versions of what matters from the fault's end on. ``wanted``: pods, where no object says."""
    world = _World(history, wanted)
    since: int | None = None
    wants = ""
    for t_ns, life, event in changes(world.all):
        if t_ns > start_ns and since is None and not (wants := world.wants()):
            since = start_ns
        if since is not None and t_ns - since >= hold_ns and t_ns > start_ns:
            return Return(start_ns, since, "")
        world.take(life, event.object if event is not None else None)
        if t_ns < start_ns:
            continue
        lacking = world.wants()
        since = None if lacking else since if since is not None else t_ns
        wants = lacking or wants
    if since is None and not wants and not (wants := world.wants()):
        since = start_ns
    if since is not None and history.recorded_until_ns - since >= hold_ns:
        return Return(start_ns, since, "")
    return Return(start_ns, None, wants or "the system was not steady for long enough")


def heard_again(history: History, back: Return, hold_ns: int) -> Return:
    """``back``, but not while a pod that is called Ready serves nobody."""
    if back.steady_ns is None:
        return back
    steady_ns = back.steady_ns
    for silence in silences(history):
        if silence.end_ns <= steady_ns:
            continue
        lost = f"{silence.pod} was Ready and gave no token ({count(silence.lost, 'request')} waited in vain)"
        if not silence.ended or history.recorded_until_ns - silence.end_ns < hold_ns:
            return Return(back.start_ns, None, lost)
        steady_ns = silence.end_ns
    return Return(back.start_ns, steady_ns, back.wants)


class _World:
    """What is wanted and what is there, kept up version by version."""

    def __init__(self, history: History, wanted: int) -> None:
        self._wanted = wanted
        self._workload = {pod.uid for pod in workload_pods(history)}
        self._gangs = [(gang, {m.uid for m in gang.members}) for gang in gangs_of(history)]
        targets = targets_of(history)
        self._targets = {life.uid for life in targets}
        nodes, pods, groups = (lives(history.objects, kind) for kind in ("Node", "Pod", "PodGroup"))
        self.all: list[Life] = [*nodes, *pods, *groups, *targets]
        self._was_ready: set[str] = set()
        self._no_room = NoRoom(history, self._workload, _first_ns(history))
        self._went = ""
        """The workload itself, where somebody deleted it: then nobody wants a replica, and nothing serves."""
        self._now: dict[str, dict[str, Json]] = {"Node": {}, "Pod": {}, "PodGroup": {}, "target": {}}

    def take(self, life: Life, obj: Json | None) -> None:
        kind = "target" if life.uid in self._targets else life.kind
        if obj is None:
            self._now[kind].pop(life.uid, None)
            self._went = f"{life.kind} {life.name} was gone" if kind == "target" else self._went
        else:
            self._went = "" if kind == "target" else self._went
            self._now[kind][life.uid] = obj
            if kind == "Node" and ready(obj):
                self._was_ready.add(life.uid)

    def wants(self) -> str:
        """The first thing that is not as it should be; empty when all is."""
        if self._went:
            return self._went
        pods = self._now["Pod"]
        wanted = sum(int(t.get("spec", {}).get("replicas", 1)) for t in self._now["target"].values())
        serving = sum(1 for uid in self._workload if (pod := pods.get(uid)) and ready(pod) and not going(pod))
        if serving < wanted:
            return f"{serving} of {wanted} wanted replicas were ready"
        if serving < self._wanted and serving + self._done() < self._wanted:
            return f"{serving} pods were ready, of the {self._wanted} that were so when the first fault struck"
        if homeless := self._no_room.of(pods):
            return f"{listed(homeless)} found no room"
        nodes = self._now["Node"]
        if bad := [name_of(nodes[uid]) for uid in self._was_ready & nodes.keys() if not steady(nodes[uid])]:
            return f"{listed(sorted(bad))} was not Ready"
        for gang, members in self._gangs:
            bound = sum(1 for uid in members if holds(pods.get(uid)))
            own = gang.group.object
            sized = gang.group.need is not None and (own is None or own.uid in self._now["PodGroup"])
            if sized and 0 < bound < gang.need:
                return f"{gang.group.name} had {bound} of {gang.need} members"
        return ""

    def _done(self) -> int:
        """Pods of the workload that are there and have ended well."""
        own = (self._now["Pod"].get(uid, {}) for uid in self._workload)
        return sum(1 for pod in own if pod.get("status", {}).get("phase") == "Succeeded")


def steady(node: Json) -> bool:
    """Ready, or about to go by somebody's will."""
    return ready(node) or going(node) or disrupted(node)


def _wrong(history: History, spec: RecoverySpec, back: Return, late: bool, left: list[Left]) -> list[str]:
    scale = history.run.time_scale
    parts = []
    if late and back.steady_ns is None:
        span = both(history.recorded_until_ns - back.start_ns, scale)
        parts.append(f"not steady for {span} after the last fault (limit {spec.steady_s_max:.0f} s): {back.wants}")
    elif late and back.steady_ns is not None:
        span = both(back.steady_ns - back.start_ns, scale)
        parts.append(f"steady only {span} after the last fault was over (limit {spec.steady_s_max:.0f} s)")
    if left:
        names = listed([f"{item.kind} {item.name} {item.what}" for item in left])
        parts.append(f"{count(len(left), 'thing')} left over: {names}")
    return parts


def _story(history: History, spec: RecoverySpec, back: Return, left: list[Left], wrong: list[str]) -> str:
    since = f", and {left[0].name} has been so since {clock(history, left[0].since_ns)}" if left else ""
    return tell(
        promised=f"the system is steady within {spec.steady_s_max:.0f} s of the last fault, and nothing is left over",
        happened="; ".join(wrong),
        when=f"the last fault was over {moment(history, back.start_ns)}{since}",
        objects=[f"{item.kind} {item.name}" for item in left],
    )


def _evidence(ends: list[FaultEvent], back: Return, left: list[Left]) -> tuple[Evidence, ...]:
    found = [
        Evidence(item.ref, item.since_ns, f"{item.kind} {item.name} {item.what}", {"kind": item.kind}) for item in left
    ]
    last = max(ends, key=lambda event: event.t_ns)
    if back.wants:
        found.append(Evidence(f"faults:{last.index}", back.start_ns, back.wants))
    found += [Evidence(f"faults:{e.index}", e.t_ns, f"{e.fault_id} was over ({e.stage.value})") for e in ends]
    if back.steady_ns is not None:
        found.append(Evidence(f"faults:{last.index}", back.steady_ns, "steady from here on"))
    return tuple(found)
