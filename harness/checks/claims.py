"""A device that pods get by claim is in one claim at a time, and its taint takes off those that hold it, only them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.claims_waiting import Waited, waits
from harness.checks.machine_did_not_stall import stalls
from harness.checks.sight import blind
from harness.checks.story import moment, tell
from harness.checks.units import both, count, scenario_s, span_ns
from harness.history.devices import CLAIM, SLICE, Device, Held, Tainted, devices_of, held, tainted
from harness.history.lives import Life, condition, going, lives, terminal
from harness.history.tables import ObjectEvent
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import ClaimsSpec

TAINT_MANAGER = "DeletionByDeviceTaintManager"
"""Reason of the condition DisruptionTarget (kubernetes v1.37 pkg/controller/devicetainteviction)."""
STAYED = "stayed"
"""The fact of an evidence that a pod did not leave a tainted device in time."""
_BLINDING = frozenset({"Pod", CLAIM, SLICE})


@dataclass(frozen=True, slots=True)
class Struck:
    """A pod that held a device when it was tainted. ``left_ns``: when it was on its way out, if it ever was."""

    pod: Life
    held: Held
    taint: Tainted
    left_ns: int | None

    def took_ns(self, until_ns: int) -> int:
        return (until_ns if self.left_ns is None else self.left_ns) - self.taint.start_ns


def claims(history: History, spec: ClaimsSpec) -> Finding:
    """Put to the test by every device that was given to a claim, and by every pod whose device was tainted.

    Tolerated taints, shared devices and administrators' own access are left out. A device that is tainted for less than
    ``leave_s_max`` need not have taken its pod off. Time in which the whole machine stood still does not count.
    With ``waiting_s_max`` a pod that finds no devices for longer is a fail, and it is told what stood free meanwhile.

    UNKNOWN when no claim was given a device, or one of a pool that no recorded slice has, when the recording ends
    before a pod's time to leave is up, and when the recorder was blind for pods, claims or slices and nothing was seen
    to be wrong.
    """
    limit_ns, until_ns = span_ns(spec.leave_s_max, history.run.time_scale), history.recorded_until_ns
    every, taints = held(history), tainted(history)
    twice = _twice(every)
    struck = [each for taint in taints for each in _struck(history, every, taint)]
    stayed = [s for s in struck if _stayed_ns(history, s, until_ns) > limit_ns]
    undecided = [s for s in struck if s.left_ns is None and s not in stayed and s.taint.end_ns is None]
    innocent = _innocent(history, every, taints)
    waited = waits(history, every, taints)
    short = [w for w in waited if spec.waiting_s_max is not None and _counted_ns(history, w) > _most_ns(history, spec)]
    wrong = [*_wrong(history, spec, twice, stayed, innocent, until_ns), *_short(history, spec, short)]
    gap = blind(history, _BLINDING)
    if wrong and (gap is None or twice or innocent):
        status, sentence = Status.FAIL, "; ".join(wrong)
    elif gap is not None:
        status, sentence = Status.UNKNOWN, f"nothing was seen to be wrong, but the recorder was blind for {gap.kind}"
    elif not every:
        status, sentence = Status.UNKNOWN, "no claim was given a device"
    elif unseen := _unseen(history, every):
        status, sentence = Status.UNKNOWN, f"no ResourceSlice of {unseen[0]} was recorded, so nobody knows its taints"
    elif undecided:
        name = undecided[0].pod.name
        status, sentence = Status.UNKNOWN, f"{name} was on a tainted device when the recording ended, before its time"
    else:
        status = Status.PASS
        longest = max((s.took_ns(until_ns) for s in struck), default=0)
        off = f"{count(len(struck), 'pod')} left a tainted device, within {both(longest, history.run.time_scale)}"
        sentence = (
            f"{count(len(every), 'device')} given to claims, none to two at once; {off if struck else 'none tainted'}, "
            "and no pod was taken off a healthy one"
        )
    numbers: dict[str, Value] = {
        "devices_given": len(every),
        "given_twice": len(twice),
        "taints": len(taints),
        "pods_struck": len(struck),
        "pods_stayed": len(stayed),
        "pods_taken_off_unstruck": len(innocent),
        "leave_s_max": spec.leave_s_max,
        "waiting_s_longest": scenario_s(waited[0].length_ns, history.run.time_scale) if waited else None,
        "waiting_s_max": spec.waiting_s_max,
    }
    story = _story(history, spec, twice, stayed, innocent, short) if status is Status.FAIL else ""
    rows = (*_evidence(twice, struck, stayed, innocent), *_waiting_rows(history, waited))
    return Finding("claims", Role.CHECK, status, sentence, len(every) + len(struck), numbers, rows, story=story)


def _unseen(history: History, every: tuple[Held, ...]) -> list[str]:
    """Pools of which a claim got a device and that no slice in the recording has."""
    slices = (event.object for life in lives(history.objects, SLICE) for event in life.seen)
    known = {device[:2] for piece in slices for device in devices_of(piece)}
    pools = {h.device[:2] for h in every} - known
    return sorted(f"{pool} ({driver})" for driver, pool in pools)


def said(device: Device) -> str:
    return f"{device[2]} of {device[1]}"


def _twice(every: tuple[Held, ...]) -> list[tuple[Held, Held]]:
    """The later one of each pair is second. Claims come through one watch, so the order of its lines is what was."""
    last: dict[Device, Held] = {}
    found = []
    for each in every:
        if not each.alone:
            continue
        before = last.get(each.device)
        if before is not None and (before.end_ns is None or before.end_ns > each.event.t_ns):
            found.append((before, each))
        last[each.device] = each
    return found


def _struck(history: History, every: tuple[Held, ...], taint: Tainted) -> list[Struck]:
    pods = {pod.uid: pod for pod in lives(history.objects, "Pod")}
    found = []
    for each in every:
        there = each.event.t_ns <= taint.start_ns and (each.end_ns is None or each.end_ns > taint.start_ns)
        if each.device != taint.device or not there or each.tolerates(taint.taint):
            continue
        for pod in (pods[uid] for uid in sorted(each.pods) if uid in pods):
            left = pod.when(lambda p: going(p) or terminal(p)) or pod.gone
            if left is None or left.t_ns >= taint.start_ns:
                found.append(Struck(pod, each, taint, left.t_ns if left else None))
    return found


def _stayed_ns(history: History, struck: Struck, until_ns: int) -> int:
    """For how long it was on the device while that was tainted, without the time in which nobody could act."""
    start_ns = struck.taint.start_ns
    ends = (until_ns, struck.left_ns, struck.taint.end_ns)
    end_ns = min(end for end in ends if end is not None)
    still = sum(max(0, min(b, end_ns) - max(a, start_ns)) for a, b in stalls(history))
    return end_ns - start_ns - still


def _innocent(history: History, every: tuple[Held, ...], taints: tuple[Tainted, ...]) -> list[tuple[Life, ObjectEvent]]:
    """Pods that the taint manager took off, though none of their devices had been tainted by then."""
    found = []
    for pod in lives(history.objects, "Pod"):
        event = pod.when(lambda p: condition(p, "DisruptionTarget").get("reason") == TAINT_MANAGER)
        if event is None:
            continue
        mine = {each.device for each in every if pod.uid in each.pods}
        if not any(t.device in mine and t.start_ns <= event.t_ns for t in taints):
            found.append((pod, event))
    return found


def _wrong(
    history: History,
    spec: ClaimsSpec,
    twice: list[tuple[Held, Held]],
    stayed: list[Struck],
    innocent: list[tuple[Life, ObjectEvent]],
    until_ns: int,
) -> list[str]:
    parts = []
    if twice:
        one, two = twice[0]
        pair = f"{one.claim.name} and {two.claim.name}"
        parts.append(f"{count(len(twice), 'device')} in two claims at once (first: {said(one.device)} in {pair})")
    if stayed:
        first = stayed[0]
        took = both(first.took_ns(until_ns), history.run.time_scale)
        parts.append(
            f"{count(len(stayed), 'pod')} stayed on a tainted device (first: {first.pod.name} on "
            f"{said(first.held.device)} for {took}, limit {spec.leave_s_max:.0f} s)"
        )
    if innocent:
        parts.append(f"{count(len(innocent), 'pod')} taken off healthy devices (first: {innocent[0][0].name})")
    return parts


def _short(history: History, spec: ClaimsSpec, short: list[Waited]) -> list[str]:
    return [f"{w.told(history.run.time_scale)} (limit {spec.waiting_s_max:.0f} s)" for w in short[:1]]


def _most_ns(history: History, spec: ClaimsSpec) -> int:
    return span_ns(spec.waiting_s_max or 0.0, history.run.time_scale)


def _counted_ns(history: History, waited: Waited) -> int:
    """Without the time in which the whole machine stood still."""
    still = sum(max(0, min(b, waited.end_ns) - max(a, waited.start_ns)) for a, b in stalls(history))
    return waited.length_ns - still


def _why(waited: Waited) -> str:
    said = (condition(event.object, "PodScheduled") for event in reversed(waited.pod.seen))
    return next((str(c.get("message")) for c in said if c.get("status") == "False"), "")


def _waiting_rows(history: History, waited: list[Waited]) -> tuple[Evidence, ...]:
    scale = history.run.time_scale
    return tuple(Evidence(f"objects:{w.index}", w.start_ns, w.told(scale), {"pod": w.pod.name}) for w in waited)


def _story(
    history: History,
    spec: ClaimsSpec,
    twice: list[tuple[Held, Held]],
    stayed: list[Struck],
    innocent: list[tuple[Life, ObjectEvent]],
    short: list[Waited],
) -> str:
    if twice:
        one, two = twice[0]
        return tell(
            promised="a device is in one claim at a time",
            happened=f"{said(one.device)} was given to {two.claim.name} while {one.claim.name} had it",
            when=moment(history, two.event.t_ns),
            objects=[one.claim.name, two.claim.name],
            change="find out who wrote the second allocation: two schedulers know nothing of each other",
        )
    if innocent:
        pod, event = innocent[0]
        return tell(
            promised="a taint takes off only the pods that hold the device",
            happened=f"{pod.name} was taken off, though no device of its claims was tainted",
            when=moment(history, event.t_ns),
            objects=[pod.name],
            change="look at the selectors of the DeviceTaintRules",
        )
    if not stayed:
        worst = short[0]
        return tell(
            promised=f"a pod waits for devices for {spec.waiting_s_max:.0f} s at most",
            happened=worst.told(history.run.time_scale),
            when=moment(history, worst.start_ns),
            objects=[worst.pod.name, *(pool for pool, _ in worst.free)],
            cause=_why(worst),
            change="ask for less at once, loosen the claim's constraints, or replace machines that lack a device",
        )
    first = stayed[0]
    return tell(
        promised=f"a pod leaves a device within {spec.leave_s_max:.0f} s of its taint (NoExecute)",
        happened=f"{first.pod.name} stayed on {said(first.held.device)}",
        when=moment(history, first.taint.start_ns),
        objects=[first.pod.name, first.held.claim.name, first.held.device[1]],
        change="see whether kube-controller-manager's device taint eviction runs (gate DRADeviceTaints)",
    )


def _evidence(
    twice: list[tuple[Held, Held]],
    struck: list[Struck],
    stayed: list[Struck],
    innocent: list[tuple[Life, ObjectEvent]],
) -> tuple[Evidence, ...]:
    rows = [
        Evidence(
            f"objects:{two.event.index}",
            two.event.t_ns,
            f"{said(two.device)} is in {one.claim.name} and {two.claim.name}",
            {"device": said(two.device), "claim": two.claim.name},
        )
        for one, two in twice
    ]
    for each in struck:
        text = f"{each.pod.name} held {said(each.held.device)} when it was tainted"
        facts: dict[str, Value] = {"pod": each.pod.name, "device": said(each.held.device)}
        facts |= {STAYED: True} if each in stayed else {}
        rows.append(Evidence(f"objects:{each.taint.event.index}", each.taint.start_ns, text, facts))
    for pod, event in innocent:
        text = f"{pod.name} was taken off healthy devices"
        rows.append(Evidence(f"objects:{event.index}", event.t_ns, text, {"pod": pod.name}))
    return tuple(rows)
