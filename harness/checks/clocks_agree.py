"""The clocks of the run agree: those of the harness, the API server, the nodes and the load generator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from harness.checks.rows import rows_of
from harness.checks.units import NS_PER_S, count, listed
from harness.history.lives import Life, lives, node_of, workload_pods
from harness.history.tables import SERVER_TIME_MARK, WALL_CLOCK_MARK, Mark, ObjectEvent, ObjectEventType
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History

LIMIT_S = 2.0
_STAMP_S = 1.0
"""The API's stamps are cut to whole seconds."""
_STAMPS_MIN = 3
"""A stamp may be seen late for many reasons, so fewer do not show that a clock is behind."""
API, LOAD, OWN = "the API server", "the load generator", "the harness's own machine"


@dataclass(slots=True)
class _Clock:
    """``ahead_s`` and ``behind_s`` are what its stamps prove, in clock seconds; never negative."""

    name: str
    seen: int = 0
    ahead_s: float = 0.0
    behind_s: float = 0.0
    ref: str = ""
    t_ns: int | None = None
    _least_s: float = field(default=float("inf"))

    def stamped(self, late_s: float, event: ObjectEvent) -> None:
        """It stamped a change that the recorder received ``late_s`` after that moment, by the recorder's clock."""
        self.seen += 1
        if late_s < self._least_s:
            self._least_s, self.ref, self.t_ns = late_s, f"objects:{event.index}", event.t_ns
            self.ahead_s = max(0.0, -late_s)

    def told(self, late_s: float, took_s: float, mark: Mark) -> None:
        """It was asked for its time of day: what came is older than the answer by no more than that took, and by the
        part of a second that was cut. So one answer proves both."""
        self.seen += 1
        ahead_s, behind_s = max(0.0, -late_s), max(0.0, late_s - took_s - _STAMP_S)
        if max(ahead_s, behind_s) > self.off_s:
            self.ahead_s, self.behind_s = ahead_s, behind_s
            self.ref, self.t_ns = f"marks:{mark.index}", mark.t_ns

    def settle(self) -> None:
        if self.seen >= _STAMPS_MIN:
            self.behind_s = max(0.0, self._least_s - _STAMP_S)

    @property
    def off_s(self) -> float:
        return max(self.ahead_s, self.behind_s)

    @property
    def words(self) -> str:
        return f"{self.name} {self.off_s:.1f} s {'ahead' if self.ahead_s > self.behind_s else 'behind'}"


def clocks_agree(history: History) -> Finding:
    """A stamp from the future proves a clock that is ahead; one that is behind shows in the least late of several.

    Stamps are compared with the recorder's time of day: of the API server those of new objects and the time of day in
    its answers, of a node its heartbeats and the starts of its containers. The load shares the run's own clock, so its
    tokens must come while their pod is there. A time of day that was set in the middle of the run counts as off, too.

    UNKNOWN when the recorder did not note its time of day, as in runs of old, or when the API server neither made an
    object meanwhile nor told its own.
    """
    noted = [mark for mark in history.marks if mark.name == WALL_CLOCK_MARK and _seconds(mark.value) is not None]
    clocks = [*_stamping(history, noted[0]), *_own(noted), *_load(history)] if noted else []
    made = sum(clock.seen for clock in clocks if clock.name == API)
    off = sorted((clock for clock in clocks if clock.off_s > LIMIT_S), key=lambda clock: -clock.off_s)
    seen = sum(clock.seen for clock in clocks)
    numbers: dict[str, Value] = {
        "off_s_max": max((clock.off_s for clock in clocks), default=None),
        "off_s_limit": LIMIT_S,
        "clocks": len(clocks),
    }
    if not noted:
        status = Status.UNKNOWN
        sentence = "the recorder's time of day was not noted, so no clock can be compared with it"
    elif off:
        status = Status.FAIL
        sentence = (
            f"{count(len(off), 'clock')} of {len(clocks)} by more than {LIMIT_S:g} s away from the harness's: "
            f"{listed([clock.words for clock in off])}"
        )
    elif not made:
        status = Status.UNKNOWN
        sentence = (
            "no object was made while the recorder watched, and no answer of the API server told its time of day, so "
            "nothing shows its clock"
        )
    else:
        nodes = sum(1 for clock in clocks if clock.name not in (API, LOAD, OWN))
        names = [API, *([count(nodes, "node")] if nodes else []), *(c.name for c in clocks if c.name == LOAD)]
        status = Status.PASS
        sentence = f"the clocks of {listed(names)} agree with the harness's within {LIMIT_S:g} s ({seen} comparisons)"
    evidence = tuple(Evidence(clock.ref, clock.t_ns, clock.words) for clock in off if clock.ref)
    return Finding("clocks_agree", Role.VALIDITY, status, sentence, seen, numbers, evidence)


def _stamping(history: History, noted: Mark) -> list[_Clock]:
    """The API server, and each node that stamped something."""
    start_s = (_seconds(noted.value) or 0.0) - noted.t_ns / NS_PER_S
    server = _Clock(API)
    for event in history.objects:
        if event.type is ObjectEventType.ADDED:
            made_s = _seconds((event.object.get("metadata") or {}).get("creationTimestamp") or "")
            if made_s is not None:
                server.stamped(start_s + event.t_ns / NS_PER_S - made_s, event)
    clocks = {"": server}
    for name, stamp_s, event in _of_nodes(history):
        clocks.setdefault(name, _Clock(f"node {name}")).stamped(start_s + event.t_ns / NS_PER_S - stamp_s, event)
    for clock in clocks.values():
        clock.settle()
    for mark in history.marks:
        if mark.name == SERVER_TIME_MARK and (told_s := _seconds(mark.value)) is not None:
            server.told(start_s + mark.t_ns / NS_PER_S - told_s, _answer_s(mark), mark)
    return list(clocks.values())


def _answer_s(mark: Mark) -> float:
    """How long the answer took to come; one that does not say proves nothing of a clock that is behind."""
    try:
        return max(0.0, float(mark.detail))
    except ValueError:
        return float("inf")


def _of_nodes(history: History) -> Iterator[tuple[str, float, ObjectEvent]]:
    for node in lives(history.objects, "Node"):
        for stamp_s, event in _renewed(node, _heartbeats(node)):
            yield node.name, stamp_s, event
    for pod in workload_pods(history):
        for stamp_s, event in _renewed(pod, _starts(pod)):
            if name := node_of(event.object):
                yield name, stamp_s, event


def _heartbeats(node: Life) -> Iterator[list[str]]:
    for event in node.seen:
        conditions = event.object.get("status", {}).get("conditions") or ()
        yield [str(c["lastHeartbeatTime"]) for c in conditions if c.get("lastHeartbeatTime")]


def _starts(pod: Life) -> Iterator[list[str]]:
    for event in pod.seen:
        states = (s.get("state") or {} for s in event.object.get("status", {}).get("containerStatuses") or ())
        yield [str(state["running"]["startedAt"]) for state in states if (state.get("running") or {}).get("startedAt")]


def _renewed(life: Life, stamps: Iterable[list[str]]) -> Iterator[tuple[float, ObjectEvent]]:
    """The latest stamp of each version in which it is another one than before; not of one that a list showed."""
    before: str | None = None
    for event, found in zip(life.seen, stamps, strict=True):
        latest = max(found, default=None)
        if latest is None or latest == before:
            continue
        before = latest
        stamp_s = _seconds(latest)
        if stamp_s is not None and event.type in (ObjectEventType.ADDED, ObjectEventType.MODIFIED):
            yield stamp_s, event


def _own(noted: list[Mark]) -> list[_Clock]:
    """Whether the time of day went as fast as the run's clock."""
    if len(noted) < 2:
        return []
    first, last = noted[0], noted[-1]
    passed_s = (_seconds(last.value) or 0.0) - (_seconds(first.value) or 0.0)
    jumped_s = passed_s - (last.t_ns - first.t_ns) / NS_PER_S
    return [_Clock(OWN, 1, max(0.0, jumped_s), max(0.0, -jumped_s), f"marks:{last.index}", last.t_ns)]


def _load(history: History) -> list[_Clock]:
    """No token comes from a pod before the pod was seen, and none of a whole answer after it was gone."""
    table = rows_of(history)
    first, last = table.numbers("first_token_ns"), np.where(table.ok, table.numbers("last_token_ns"), np.nan)
    clock = _Clock(LOAD)
    for pod in workload_pods(history):
        places = table.places("pod").get(pod.name)
        if places is None or np.isnan(first[places]).all():
            continue
        clock.seen += 1
        if pod.seen[0].type is ObjectEventType.ADDED:
            clock.behind_s = max(clock.behind_s, (pod.born_ns - float(np.nanmin(first[places]))) / NS_PER_S)
        if pod.gone is not None and pod.gone.type is ObjectEventType.DELETED and not np.isnan(last[places]).all():
            clock.ahead_s = max(clock.ahead_s, (float(np.nanmax(last[places])) - pod.gone.t_ns) / NS_PER_S)
    return [clock] if clock.seen else []


@lru_cache(maxsize=100_000)
def _seconds(stamp: str) -> float | None:
    """Of the epoch; None for what is no time."""
    try:
        return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
