"""A queue gives no more GPUs than its quota, holds nobody back for whom there is quota, lets who is admitted run, and
gets back what it takes away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.checks.quota_books import Books, admitted, asked, finished, given, is_of, owner, stopped, waits
from harness.checks.quota_spans import Open, Span
from harness.checks.quota_stuck import gated, put_off, unadmitted
from harness.checks.sight import blind
from harness.checks.story import moment, tell
from harness.checks.units import NS_PER_S, both, count, scenario_s, span_ns
from harness.history.gpus import changes
from harness.history.lives import Json, Life, gpus_of, lives, node_of, terminal
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import QuotaSpec

NEEDS = ("machine_did_not_stall",)
_AT_ONCE_NS = NS_PER_S
"""Whoever came so shortly before the recording's end had been kept waiting by nobody yet."""
_BLINDING = frozenset({"ClusterQueue", "LocalQueue", "Workload", "Pod"})


def quota(history: History, spec: QuotaSpec) -> Finding:
    """Kueue's own books (its Workloads, ClusterQueues and LocalQueues), counted in GPUs, beside the pods themselves.

    What was given to a workload whose pods have all ended is free. A pod may hold its GPUs for `leave_s_max` after its
    workload lost its quota, or without ever having had any. A workload waits too long when there is quota for it, its
    own or what its queue may borrow, for more than `waiting_s_max`; in a queue of StrictFIFO only who is first is held
    back by nobody. A pod of an admitted workload may have Kueue's scheduling gate for `gates_s_max`, a workload may
    hold quota without being admitted (its admission checks) for `unadmitted_s_max`, and one that was evicted, by a
    check that says Retry for instance, must be in its queue again within `requeued_s_max`.

    UNKNOWN without a workload in a queue that asks for GPUs, when a queue of one was never recorded, when one of the
    promises did not hold as the recording ended, before its time was up, and when the recorder was blind for queues,
    workloads or pods and nothing was seen to be wrong outside of that time.
    """
    workloads = [life for life in lives(history.objects, "Workload") if any(asked(e.object) for e in life.seen)]
    scale = history.run.time_scale
    over, idle = walked(history, workloads)
    held = list(holding(history, workloads))
    names = named(workloads)
    limits = (
        (over, spec.over_s_max),
        (idle, spec.waiting_s_max),
        (held, spec.leave_s_max),
        (shut := gated(history, workloads), spec.gates_s_max),
        (unadmitted(history, workloads, names), spec.unadmitted_s_max),
        (put_off(history, workloads, names), spec.requeued_s_max),
    )
    long = [(s, limit_s) for spans, limit_s in limits for s in spans if s.length_ns > span_ns(limit_s, scale)]
    wrong = [(s, limit_s) for s, limit_s in long if blind(history, _BLINDING, s.start_ns, s.end_ns) is None]
    until_ns = history.recorded_until_ns
    open_ = [s for spans, _ in limits for s in spans if s.end_ns >= until_ns and s.length_ns > _AT_ONCE_NS]
    ever = [life for life in workloads if life.when(admitted)]
    gap = blind(history, _BLINDING)
    if wrong:
        first = [f"{s.name} {s.what} for {both(s.length_ns, scale)} (limit {by:.0f} s)" for s, by in wrong[:3]]
        more = [f"{len(wrong) - 3} more"] if len(wrong) > 3 else []
        status, sentence = Status.FAIL, "; ".join([*first, *more])
    elif gap is not None:
        status, sentence = Status.UNKNOWN, f"nothing was seen to be wrong, but the recorder was blind for {gap.kind}"
    elif not workloads:
        status = Status.UNKNOWN
        sentence = "no workload that asks for GPUs was in a queue, so no quota was put to the test"
    elif unseen := _unseen(history, workloads):
        status, sentence = Status.UNKNOWN, f"{', '.join(unseen[:3])}: never recorded, so nobody knows its quota"
    elif open_:
        said = f"{open_[0].name} {open_[0].what} for {both(open_[0].length_ns, scale)}"
        status, sentence = Status.UNKNOWN, f"{said} when the recording ended, before its time was up"
    else:
        status = Status.PASS
        sentence = (
            f"{count(len(workloads), 'workload')}, {len(ever)} admitted: no queue over its quota, none waited beside "
            f"free quota for longer than {both(_longest_ns(idle), scale)} (limit {spec.waiting_s_max:.0f} s), no pod "
            f"held GPUs without it for longer than {both(_longest_ns(held), scale)} (limit {spec.leave_s_max:.0f} s)"
        )
        if shut:
            took = both(_longest_ns(shut), scale)
            sentence += f"; {count(len(shut), 'gate')} gone within {took} of the admission"
    numbers: dict[str, Value] = {
        "workloads": len(workloads),
        "admitted": len(ever),
        "over_quota": len(over),
        "waited_s_longest": scenario_s(_longest_ns(idle), scale),
        "held_s_longest": scenario_s(_longest_ns(held), scale),
        "gates": len(shut),
    }
    rows = tuple(
        Evidence(f"objects:{s.name}", s.start_ns, f"{s.name} {s.what} for {both(s.length_ns, scale)}") for s, _ in wrong
    )
    story = _story(history, [s for s, _ in wrong], sentence) if wrong else ""
    return Finding("quota", Role.CHECK, status, sentence, len(workloads), numbers, rows, NEEDS, story=story)


def _longest_ns(spans: Sequence[Span]) -> int:
    return max((span.length_ns for span in spans), default=0)


def _unseen(history: History, workloads: Sequence[Life]) -> list[str]:
    """Queues that workloads are in, or got their quota from, and that are not in the recording."""
    queues = {life.name for life in lives(history.objects, "ClusterQueue")}
    locals_ = {(life.namespace, life.name): life.last for life in lives(history.objects, "LocalQueue")}
    found: set[str] = set()
    for life in workloads:
        for obj in (event.object for event in life.seen):
            if (held := given(obj)) is not None and held[0] not in queues:
                found.add(f"ClusterQueue {held[0]}")
            local = str(obj.get("spec", {}).get("queueName") or "")
            if waits(obj) and local:
                queue = locals_.get((life.namespace, local))
                name = "" if queue is None else str(queue.get("spec", {}).get("clusterQueue") or "")
                if queue is None:
                    found.add(f"LocalQueue {local}")
                elif name not in queues:
                    found.add(f"ClusterQueue {name}")
    return sorted(found)


def _story(history: History, wrong: Sequence[Span], sentence: str) -> str:
    return tell(
        promised="a queue gives no more than its quota, gives what is free, and gets back what it takes away",
        happened=sentence,
        when=moment(history, min(s.start_ns for s in wrong)),
        objects=[s.name for s in wrong],
    )


def named(workloads: Sequence[Life]) -> dict[str, str]:
    """By their uid, by what they stand for."""
    return {life.uid: "{} {}".format(*owner(life)).strip() or life.name for life in workloads}


def walked(history: History, workloads: Sequence[Life]) -> tuple[list[Span], list[Span]]:
    """Times over quota, and times of waiting beside free quota."""
    locals_ = lives(history.objects, "LocalQueue")
    open_to = [q for q in locals_ if not stopped(q.last)]
    books = Books({(q.namespace, q.name): str(q.last.get("spec", {}).get("clusterQueue", "")) for q in open_to})
    names = named(workloads)
    over, idle = Open(), Open()
    pods = {p.uid: [w.uid for w in workloads if is_of(p, w)] for p in lives(history.objects, "Pod")}
    alive: dict[str, set[str]] = {}
    watched = [pod for pod in lives(history.objects, "Pod") if pods[pod.uid]]
    for t_ns, life, event in changes([*lives(history.objects, "ClusterQueue"), *workloads, *watched]):
        obj = event.object if event is not None else None
        if life.kind == "Pod":
            for uid in pods[life.uid]:
                there = alive.setdefault(uid, set())
                (there.discard if obj is None or terminal(obj) else there.add)(life.uid)
                (books.done.discard if there else books.done.add)(uid)
        else:
            books.take(life, obj)
        over.at(t_ns, {n: f"gave {gave} GPUs of {may}" for n, (gave, may) in books.over().items()})
        fits = list(books.fitting())
        idle.at(t_ns, {names[u]: f"waited for {asks} GPUs beside {free} in its queue" for u, asks, free in fits})
    until = history.recorded_until_ns
    return over.closed(until), idle.closed(until)


def holding(history: History, workloads: Sequence[Life]) -> Iterator[Span]:
    """Times in which a pod had GPUs and its workload no quota."""
    until = history.recorded_until_ns
    for pod in lives(history.objects, "Pod"):
        bound = pod.when(lambda obj: bool(node_of(obj)))
        mine = [w for w in workloads if is_of(pod, w)]
        if bound is None or not gpus_of(pod.last) or not mine:
            continue
        over = pod.when(terminal) or pod.gone
        end_ns = over.t_ns if over else until
        open_ = Open()
        for t_ns, has in _admissions(mine):
            if t_ns > end_ns:
                break
            open_.at(max(t_ns, bound.t_ns), {} if has else {pod.name: "held GPUs without quota"})
        yield from (s for s in open_.closed(end_ns) if s.length_ns > 0)


def _admissions(workloads: Sequence[Life]) -> Iterator[tuple[int, bool]]:
    """Whether one of them is admitted, at each change. Who has finished needs none: its pods are its owner's to end.
    What was given to one that is gone is free for others."""
    now: dict[str, Json] = {}
    for t_ns, life, event in changes(list(workloads)):
        if event is None:
            now.pop(life.uid, None)
        else:
            now[life.uid] = event.object
        yield t_ns, any(admitted(w) or finished(w) for w in now.values())
