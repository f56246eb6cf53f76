"""No request is given to a replica that is far behind while another stands ready with room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from harness.checks.rows import Rows, ratio, rows_of
from harness.checks.sight import blind
from harness.checks.story import moment, tell
from harness.checks.units import count, span_ns
from harness.history.gpus import changes
from harness.history.lives import going, ready, workload_pods
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import RoutingSpec

NEEDS = ("load_offered", "machine_did_not_stall")
_BLINDING = frozenset({"Pod"})
_SENT, _ENDED, _READY, _UNREADY = range(4)


@dataclass(frozen=True, slots=True)
class Placed:
    """A request that was sent while at least two replicas could have had it. ``behind``: how many more requests its
    replica had in flight already than ``idle``, the least loaded of the others that were ready."""

    row: int
    t_ns: int
    pod: str
    had: int
    idle: str
    behind: int

    @property
    def least(self) -> int:
        return self.had - self.behind


def routing(history: History, spec: RoutingSpec) -> Finding:
    """By the clients' own account of what each replica has in flight: sent, and not ended.

    A replica counts as one that could have had the request from ``known_s`` after it was Ready on, for nobody hears of
    it at once, until it is not, or is asked to go. Routers that prefer a replica for what it has cached may do so up to
    ``apart_max`` requests.

    UNKNOWN when there were never two replicas to choose from, or when the recorder was blind for pods.
    """
    rows = rows_of(history)
    placed = list(placings(history, rows, span_ns(spec.known_s, history.run.time_scale)))
    wrong = [p for p in placed if p.behind >= spec.apart_max]
    share = ratio(len(wrong), len(placed))
    gap = blind(history, _BLINDING)
    limit = f"allowed {spec.misplaced_ratio_max:.0%}"
    told = f"{len(wrong)} of {count(len(placed), 'request')} went to a replica that had {spec.apart_max} or more above"
    if gap is not None:
        status, sentence = Status.UNKNOWN, f"the recorder was blind for {gap.kind}, so who could be chosen is not known"
    elif share is None:
        status, sentence = Status.UNKNOWN, "there were never two ready replicas to choose from when a request was sent"
    elif share > spec.misplaced_ratio_max:
        status = Status.FAIL
        sentence = f"{told} another that was ready ({limit}): {_most(wrong)}"
    else:
        status, sentence = Status.PASS, f"{told} another that was ready ({limit})"
    worst = max(wrong, key=lambda p: p.behind, default=None)
    numbers: dict[str, Value] = {
        "apart_max": spec.apart_max,
        "misplaced_ratio_max": spec.misplaced_ratio_max,
        "placed": len(placed),
        "misplaced": len(wrong),
        "apart_most": max((p.behind for p in placed), default=None),
    }
    evidence = tuple(
        Evidence(
            rows[p.row].ref,
            p.t_ns,
            f"to {p.pod} with {p.had} in flight, {p.idle} had {p.least}",
            {"pod": p.pod},
        )
        for p in wrong
    )
    story = ""
    if status is Status.FAIL and worst is not None:
        story = tell(
            promised=f"a request goes to a replica that has less than {spec.apart_max} above another that is ready",
            happened=f"{worst.pod} was given one more when it had {worst.had} in flight; {len(wrong)} such in all",
            when=f"the first was sent {moment(history, wrong[0].t_ns)}",
            objects=[pod for pod, _ in Counter(p.pod for p in wrong).most_common(3)] + [worst.idle],
        )
    return Finding("routing", Role.CHECK, status, sentence, len(placed), numbers, evidence, NEEDS, story=story)


def _most(wrong: list[Placed]) -> str:
    (pod, times), *_ = Counter(p.pod for p in wrong).most_common(1)
    worst = max((p for p in wrong if p.pod == pod), key=lambda p: p.behind)
    return f"{pod} took {times} of them, with up to {worst.had} in flight when {worst.idle} had {worst.least}"


def placings(history: History, rows: Rows, known_ns: int) -> Iterator[Placed]:
    """In the order of sending."""
    in_flight: Counter[str] = Counter()
    able: set[str] = set()
    for t_ns, what, pod, row in sorted([*_requests(rows), *_replicas(history, known_ns)]):
        if what == _READY:
            able.add(pod)
        elif what == _UNREADY:
            able.discard(pod)
        elif what == _ENDED:
            in_flight[pod] -= 1
        else:
            others = able - {pod}
            if others and (pod in able or len(others) > 1):
                idle = min(sorted(others), key=lambda name: in_flight[name])
                yield Placed(row, t_ns, pod, in_flight[pod], idle, in_flight[pod] - in_flight[idle])
            in_flight[pod] += 1


def _requests(rows: Rows) -> Iterator[tuple[int, int, str, int]]:
    sent, end, pods = rows.numbers("sent_ns"), rows.numbers("end_ns"), rows.texts("pod")
    for row in np.flatnonzero(rows.sent & rows.on_a_pod).tolist():
        pod = pods[row]
        assert pod is not None, "only those on a pod are asked for"
        yield int(sent[row]), _SENT, pod, row
        if not np.isnan(end[row]):
            yield int(end[row]), _ENDED, pod, row


def _replicas(history: History, known_ns: int) -> Iterator[tuple[int, int, str, int]]:
    """When each could be chosen, and when no more."""
    since: dict[str, int] = {}
    for t_ns, life, event in changes(workload_pods(history)):
        now = event is not None and ready(event.object) and not going(event.object)
        if now and life.uid not in since:
            since[life.uid] = t_ns
        elif not now and life.uid in since:
            began_ns = since.pop(life.uid) + known_ns
            if began_ns < t_ns:
                yield began_ns, _READY, life.name, -1
                yield t_ns, _UNREADY, life.name, -1
    names = {life.uid: life.name for life in workload_pods(history)}
    for uid, t_ns in since.items():
        yield t_ns + known_ns, _READY, names[uid], -1
