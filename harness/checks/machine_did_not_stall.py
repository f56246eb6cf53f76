"""The machine that ran the harness never stood still for longer than half a second, and was not crowded."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.units import NS_PER_S, clock_s, count, listed
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History

STALL_LIMIT_S = 0.5
SOURCE, NAME = "machine", "stall_s"
WAIT_NAME = "run_queue_wait_ratio"
WAIT_RATIO_LIMIT = 0.5
"""Seconds per second, as a mean over ``WAIT_OVER_S``. The healthy experiment waits 0.2 with two busy neighbours on two
cores, 0.33 at worst, and passes; at a half each thing that a process does takes twice as long as it should."""
WAIT_OVER_S = 5.0
WATCHED_MARK = "load_start"
"""The supervisor writes it only once its watchdog runs, and the watchdog records nothing but stalls."""


def stalls(history: History) -> list[tuple[int, int]]:
    """Every stall the watchdog saw, as [start, end) in history time, in order; what overlaps is one stall, so that no
    moment is forgiven twice. A sample carries a stall's length at its end."""
    table = history.samples
    seen = table[(table["source"] == SOURCE) & (table["name"] == NAME) & (table["value"] > 0)]
    spans = sorted(
        (int(t - length * NS_PER_S), int(t))
        for t, length in zip(seen["t_ns"].tolist(), seen["value"].tolist(), strict=True)
    )
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start < joined[-1][1]:
            start, end = joined[-1][0], max(end, joined.pop()[1])
        joined.append((start, end))
    return joined


@dataclass(frozen=True, slots=True)
class Crowd:
    """The span of ``WAIT_OVER_S`` in which a process of the run waited most for a processor."""

    ratio: float
    end_ns: int
    processes: tuple[str, ...]

    @property
    def too_much(self) -> bool:
        return self.ratio > WAIT_RATIO_LIMIT


def worst_crowd(history: History) -> Crowd | None:
    """None where nobody measured: in virtual time, and on systems that do not count it."""
    table = history.samples
    ours = (table["source"] == SOURCE) & (table["name"] == WAIT_NAME) & (table["t_ns"] >= _load_began_ns(history))
    seen = table[ours].sort_values("t_ns", kind="stable")
    times, ratios, labels = seen["t_ns"].tolist(), seen["value"].tolist(), seen["labels"].tolist()
    worst: Crowd | None = None
    first = 0
    for last, end_ns in enumerate(times):
        while end_ns - times[first] >= WAIT_OVER_S * NS_PER_S:
            first += 1
        if first == 0 and end_ns - times[0] < (WAIT_OVER_S - 1) * NS_PER_S:
            continue  # not measured for long enough yet
        ratio = sum(ratios[first : last + 1]) / (last + 1 - first)
        if worst is None or ratio > worst.ratio:
            names = {str(json.loads(text).get("process", "")) for text in labels[first : last + 1]}
            worst = Crowd(ratio, end_ns, tuple(sorted(names - {""})))
    return worst


def _load_began_ns(history: History) -> int:
    """Nothing of what came before is measured: clusters come up, images are made, and no request is sent."""
    return next((mark.t_ns for mark in history.marks if mark.name == WATCHED_MARK), 0)


def needs_no_crowd(history: History) -> tuple[str, ...]:
    """The needs of a check whose fail is its own proof, unless the machine was crowded: servers that are starved of the
    processor need longer than any grace, and clients that are take the waiting for a server's silence."""
    crowd = worst_crowd(history)
    return ("machine_did_not_stall",) if crowd is not None and crowd.too_much else ()


def machine_did_not_stall(history: History) -> Finding:
    """Crowded is a machine on which some process of the run waited for a processor for more than half of the time, over
    five clock seconds. The processes are the harness' own and those it started: an embedded cluster, a real API server.

    What came before the load does not count: bringing a cluster up may keep a machine busy, and nothing is timed then.
    UNKNOWN when nothing shows that the watchdog ran: no sample of it, and no load that started under its eyes. Where
    the waiting is not measured (it is on Linux) a crowded machine is not noticed.
    """
    table = history.samples
    looked = int(((table["source"] == SOURCE) & (table["name"] == NAME)).sum())
    looked += sum(1 for mark in history.marks if mark.name == WATCHED_MARK)
    began_ns = _load_began_ns(history)
    seen, crowd = [(start, end) for start, end in stalls(history) if end > began_ns], worst_crowd(history)
    long = [(start, end) for start, end in seen if clock_s(end - start) > STALL_LIMIT_S]
    longest = max((clock_s(end - start) for start, end in seen), default=0.0)
    crowded = crowd if crowd is not None and crowd.too_much else None
    numbers: dict[str, Value] = {
        "stall_s_max": longest,
        "stall_s_limit": STALL_LIMIT_S,
        "stalls_over_limit": len(long),
        "run_queue_wait_ratio_max": None if crowd is None else round(crowd.ratio, 2),
        "run_queue_wait_ratio_limit": WAIT_RATIO_LIMIT,
    }
    if not looked:
        status, sentence = Status.UNKNOWN, "nothing shows that the stall watchdog ran, so nobody watched the machine"
    elif long or crowded is not None:
        status, sentence = Status.FAIL, _wrong(long, longest, crowded)
    else:
        status = Status.PASS
        sentence = f"the longest stall of the machine was {longest:.2f} s (limit {STALL_LIMIT_S} s)"
        if crowd is not None:
            sentence += f"; no process waited for a processor for more than {crowd.ratio:.0%} of {WAIT_OVER_S:.0f} s"
    rows = [
        Evidence("samples:machine/stall_s", end, f"stood still for {clock_s(end - start):.2f} s") for start, end in long
    ]
    if crowded is not None:
        rows.append(Evidence(f"samples:machine/{WAIT_NAME}", crowded.end_ns, _waited(crowded)))
    return Finding("machine_did_not_stall", Role.VALIDITY, status, sentence, looked, numbers, tuple(rows))


def _wrong(long: list[tuple[int, int]], longest: float, crowded: Crowd | None) -> str:
    said = []
    if long:
        times = count(len(long), "time")
        said.append(f"the machine stood still {times} for longer than {STALL_LIMIT_S} s (longest {longest:.2f} s)")
    if crowded is not None:
        said.append(f"the machine was crowded: {_waited(crowded)}")
    return f"{' and '.join(said)}, so times measured in this run are not the system's"


def _waited(crowd: Crowd) -> str:
    who = listed(list(crowd.processes)) if crowd.processes else "a process of the run"
    return f"{who} waited for a processor for {crowd.ratio:.0%} of {WAIT_OVER_S:.0f} s (limit {WAIT_RATIO_LIMIT:.0%})"
