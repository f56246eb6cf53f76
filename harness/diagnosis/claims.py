"""Devices that pods get by claim: given twice, left with a pod that had to go, or out of reach of one that waits."""

from __future__ import annotations

from collections.abc import Iterator

from harness.checks.claims import STAYED
from harness.checks.units import count
from harness.diagnosis.case import SHOWN, Case
from harness.diagnosis.suspect import SCHEDULER, TAINT_EVICTION, WORKLOAD, Sure, Suspect
from harness.history.lives import condition
from harness.verdict import Evidence

_BREAKS = frozenset({"claims", "recovery", "capacity", "baseline"})


def claims(case: Case) -> Iterator[Suspect]:
    """By the finding of ``claims``, which follows each device from claim to claim."""
    rows = case.evidence("claims")
    twice = [r for r in rows if "claim" in r.facts]
    stayed = [r for r in rows if r.facts.get(STAYED)]
    innocent = [r for r in rows if "was taken off healthy devices" in r.text]
    waited = [r for r in rows if "found no devices for" in r.text]
    if twice:
        change = "see that one scheduler alone writes allocations, and its log of that claim"
        yield _of(
            SCHEDULER, f"gave {count(len(twice), 'device')} to two claims at once: {twice[0].text}", twice, change
        )
    if stayed:
        who = count(len(stayed), "pod")
        act = f"left {who} on a device that was tainted NoExecute, and told none to go: {stayed[0].text}"
        change = (
            "see whether it runs (gate DRADeviceTaints, and DRADeviceTaintRules for rules), and its log of that pod"
        )
        yield _of(TAINT_EVICTION, act, stayed, change)
    if innocent:
        act = f"took {count(len(innocent), 'pod')} off devices that nobody had tainted: {innocent[0].text}"
        yield _of(TAINT_EVICTION, act, innocent, "look at the selectors of the DeviceTaintRules")
    if waited and not twice and not stayed and not innocent:
        yield _waits(case, waited)


def _of(component: str, act: str, rows: list[Evidence], change: str) -> Suspect:
    since_ns = min(row.t_ns or 0 for row in rows)
    return Suspect(component, act, since_ns, _BREAKS, seen=tuple(rows[:SHOWN]), change=change)


def _waits(case: Case, rows: list[Evidence]) -> Suspect:
    """The scheduler keeps to what the claim asks for; that no machine has it together is the claim's own doing."""
    first = rows[0]
    pod = next((life for life in case.of("Pod") if life.name == first.facts.get("pod")), None)
    refusals = [condition(event.object, "PodScheduled") for event in pod.seen] if pod else []
    said = next((str(c.get("message")) for c in refusals if c.get("status") == "False" and c.get("message")), "")
    return Suspect(
        WORKLOAD,
        f"its claims ask for more devices together than any machine had healthy and free: {first.text}",
        first.t_ns or 0,
        _BREAKS,
        Sure.SETTING,
        seen=tuple(rows[:SHOWN]),
        otherwise=f"the scheduler would be wrong if one had them; it said: {said}" if said else "",
        change="ask for less at once, give alternatives (firstAvailable), or replace machines that lack a device",
    )
