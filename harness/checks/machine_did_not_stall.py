"""The machine that ran the harness never stood still for longer than half a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.checks.units import NS_PER_S, clock_s, count
from harness.verdict import Evidence, Finding, Role, Status

if TYPE_CHECKING:
    from harness.history.reader import History

STALL_LIMIT_S = 0.5
SOURCE, NAME = "machine", "stall_s"
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


def machine_did_not_stall(history: History) -> Finding:
    """UNKNOWN when nothing shows that the watchdog ran: no sample of it, and no load that started under its eyes."""
    table = history.samples
    looked = int(((table["source"] == SOURCE) & (table["name"] == NAME)).sum())
    looked += sum(1 for mark in history.marks if mark.name == WATCHED_MARK)
    seen = stalls(history)
    long = [(start, end) for start, end in seen if clock_s(end - start) > STALL_LIMIT_S]
    longest = max((clock_s(end - start) for start, end in seen), default=0.0)
    numbers = {"stall_s_max": longest, "stall_s_limit": STALL_LIMIT_S, "stalls_over_limit": len(long)}
    if not looked:
        status, sentence = Status.UNKNOWN, "nothing shows that the stall watchdog ran, so nobody watched the machine"
    elif long:
        status = Status.FAIL
        sentence = (
            f"the machine stood still {count(len(long), 'time')} for longer than {STALL_LIMIT_S} s (longest "
            f"{longest:.2f} s), so times measured in this run are not the system's"
        )
    else:
        status = Status.PASS
        sentence = f"the longest stall of the machine was {longest:.2f} s (limit {STALL_LIMIT_S} s)"
    evidence = tuple(
        Evidence("samples:machine/stall_s", end, f"stood still for {clock_s(end - start):.2f} s") for start, end in long
    )
    return Finding("machine_did_not_stall", Role.VALIDITY, status, sentence, looked, dict(numbers), evidence)
