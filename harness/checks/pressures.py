"""Times in which requests waited, by the clients' own account, and times in which nothing of that could be read."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from harness.checks.rows import Rows, rows_of
from harness.checks.units import NS_PER_S
from harness.history.autoscaler import METRICS_SOURCE, Reading
from harness.history.gpus import changes
from harness.history.lives import ready, workload_pods

if TYPE_CHECKING:
    from harness.history.reader import History

WAITED_NS = NS_PER_S // 2
"""A request that has no token this long after it was sent is taken to wait: an idle server answers sooner."""
JOIN_NS = NS_PER_S
"""Pressures with a shorter pause between them are one. The autoscaler may read so much sooner than the recorder."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """A time in which, by the clients' own account, more requests waited than the autoscaler keeps. ``seen_ns`` is when
    the metric was first read above its target, ``read`` what was read until then, ``ref`` where that stands."""

    metric: str
    start_ns: int
    end_ns: int
    seen_ns: int | None
    read: str
    ref: str

    @property
    def lag_ns(self) -> int | None:
        return None if self.seen_ns is None else max(0, self.seen_ns - self.start_ns)


@dataclass(frozen=True, slots=True)
class Hole:
    """A time in which the metric could not be read. ``watched`` says whether the recorder itself was there to tell."""

    metric: str
    start_ns: int
    end_ns: int
    watched: bool
    ref: str


def ref_of(metric: str) -> str:
    """Where the readings of a metric per pod stand."""
    return f"samples:{METRICS_SOURCE}/{metric}"


def pressures_of(history: History, metric: str, target: float, read: list[Reading]) -> list[Pressure]:
    """The clients' account, compared with the readings of the same time."""
    found: list[Pressure] = []
    for start, end in pressed(history, target):
        within = [r for r in read if start - JOIN_NS <= r.t_ns <= end + JOIN_NS]
        seen = next((r.t_ns for r in within if r.mean > target), None)
        until = [r for r in within if seen is None or r.t_ns < seen]
        words = "nothing" if not until else "0" if not any(r.mean for r in until) else "too little"
        found.append(Pressure(metric, start, end, seen, words, ref_of(metric)))
    return found


def _unjoined(history: History, target: float) -> list[tuple[int, int]]:
    sent, until = rows_of(history).without_a_token()
    long = until > sent + WAITED_NS
    steps = [(int(t_ns), 1, 0) for t_ns in sent[long] + WAITED_NS] + [(int(t_ns), -1, 0) for t_ns in until[long]]
    serving: set[str] = set()
    for t_ns, life, event in changes(workload_pods(history)):
        was = len(serving)
        if event is not None and ready(event.object):
            serving.add(life.uid)
        else:
            serving.discard(life.uid)
        if len(serving) != was:
            steps.append((t_ns, 0, len(serving) - was))
    found: list[tuple[int, int]] = []
    waiting = pods = 0
    start: int | None = None
    for t_ns, more, came in sorted(steps):
        waiting, pods = waiting + more, pods + came
        pressed = waiting > target * max(1, pods)
        if pressed and start is None:
            start = t_ns
        elif not pressed and start is not None:
            found.append((start, t_ns))
            start = None
    return found


def pressed(history: History, target: float) -> list[tuple[int, int]]:
    """Spans in which, by the clients' own account, more requests waited than ``target`` for each ready pod."""
    found: list[tuple[int, int]] = []
    for start, end in _unjoined(history, target):
        if found and start - found[-1][1] <= JOIN_NS:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def waited(table: Rows, more_than: float, for_ns: int = 0) -> list[tuple[int, int]]:
    """Spans in which, by the clients' own account, more requests than that had been sent ``for_ns`` before and had no
    token, without a pause."""
    sent, until = table.without_a_token()
    long = until > sent + for_ns
    steps = [(int(t_ns), 1) for t_ns in sent[long] + for_ns] + [(int(t_ns), -1) for t_ns in until[long]]
    found: list[tuple[int, int]] = []
    waiting = 0
    start: int | None = None
    for t_ns, more in sorted(steps):
        waiting += more
        if waiting > more_than and start is None:
            start = t_ns
        elif waiting <= more_than and start is not None:
            found.append((start, t_ns))
            start = None
    return found


def holes_of(history: History, metric: str, read: list[Reading], limit_ns: int) -> list[Hole]:
    """Longer than the limit without a reading while the load was on. Without any reading at all there is no metric."""
    run, table = history.run, history.samples
    if not read:
        return []
    others = sorted(table[~table["source"].isin([METRICS_SOURCE, "machine", "load"])]["t_ns"].tolist())
    inside = [r.t_ns for r in read if run.load_start_ns <= r.t_ns <= run.load_end_ns]
    edges = [run.load_start_ns, *inside, run.load_end_ns]
    return [
        Hole(metric, a, b, _watched(others, a, b, limit_ns), ref_of(metric))
        for a, b in pairwise(edges)
        if b - a > limit_ns
    ]


def _watched(others: list[int], start_ns: int, end_ns: int, limit_ns: int) -> bool:
    """Whether the recorder got other answers all the while, so that it was there to read this one."""
    inside = others[bisect_left(others, start_ns) : bisect_left(others, end_ns)]
    return all(b - a <= limit_ns for a, b in pairwise([start_ns, *inside, end_ns]))
