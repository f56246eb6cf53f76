"""Why a stream was cut, told from the cluster's side; what nothing explains is said to be unexplained."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from harness.checks.activity import Activity
from harness.checks.dead_nodes import DeadNode
from harness.checks.departures import EVER_NS, Fates, PodFate, exit_code, restarted
from harness.checks.rows import Request
from harness.checks.units import NS_PER_S, scenario_s, span_ns
from harness.history.lives import ready
from harness.history.tables import ObjectEvent, Outcome

UNEXPLAINED = "unexplained"
SIGTERM = "aborted on SIGTERM"
GRACE_END = "killed at the end of its grace"
KILLED_EARLY = "killed before its grace was over"
BEFORE_SIGTERM = "cut while its pod was going, before SIGTERM"
NODE_LOST = "node lost"
NODE_DEAD = "its node is dead, though it is called Ready"
CONTAINER_ENDED = "its container ended"
GATEWAY = "cut by the gateway"
SENT_TOO_LATE = "sent to a pod that was already going"
REFUSED = "answered with an error though its pod was in service"
NOT_YET = "its pod was called Ready before it served"
SILENT = "its server fell silent, though its pod was called Ready"

_NEAR_NS = 250_000_000
"""How far apart the same moment may be received by the load and by the recorder."""
_NODE_NEAR_NS = NS_PER_S
_TOLD_S = 3.0
"""A kubelet's seconds within which it tells the API server of a container that ended: it looks each second, and of a
pod that it evicts it speaks once all is over (1 to 2.7 s were seen with kubelet 1.37). A hollow one tells at once."""
_SETTLE_S = 2.0
"""Scenario seconds by which a kubelet may see a deletion before the recorder does, or kill early."""
_SILENCE_NS = 2 * NS_PER_S
"""An answer that ends this long after its last token went wrong at that token, and not when somebody gave it up."""
_ALIKE = 1.2
_TOGETHER = 0.5
"""Of the streams in flight so many fall at once where the gateway cuts them: fewer may fall together by chance."""
_SILENT_S = 60.0
"""Scenario seconds after which at the latest a silent kubelet is noticed (node-monitor-grace-period and a tick)."""


@dataclass(frozen=True, slots=True)
class Cause:
    name: str
    detail: str = ""
    seen: ObjectEvent | None = None
    fell_ns: int | None = None
    """When the request went wrong, which may be long before it ended."""

    @property
    def explained(self) -> bool:
        return self.name != UNEXPLAINED


def causes_of(
    lost: Sequence[Request],
    fates: Fates,
    time_scale: float,
    dead: Mapping[str, DeadNode] = MappingProxyType({}),
    active: Activity | None = None,
) -> list[Cause]:
    """For each lost request the first cause that the recorded objects bear out. ``active`` is what all requests say of
    their pods."""
    pods = [fates.of(row) for row in lost]
    fell = [fell_ns(row, active, _until_ns(fates, fate)) for row, fate in zip(lost, pods, strict=True)]
    own = [_own(row, t_ns, fate, time_scale, dead) for row, t_ns, fate in zip(lost, fell, pods, strict=True)]
    if active is not None:
        own = [cause or _not_yet(row, fates, active, time_scale) for row, cause in zip(lost, own, strict=True)]
        silent = _fallen_silent(lost, fell, own, fates, active)
        own = [silent.get(row.request_id) or cause for row, cause in zip(lost, own, strict=True)]
    orphans = sorted(
        (t_ns, row.pod, t_ns - (row.sent_ns or t_ns))
        for row, t_ns, cause in zip(lost, fell, own, strict=True)
        if _without_reason(cause) and row.pod in fates and row.pod and t_ns is not None
    )
    found = [
        (_gateway(row, t_ns, orphans, active) if _without_reason(cause) else None)
        or cause
        or Cause(UNEXPLAINED, _nothing_seen(row, fate))
        for row, t_ns, cause, fate in zip(lost, fell, own, pods, strict=True)
    ]
    return [replace(cause, fell_ns=cause.fell_ns or t_ns) for cause, t_ns in zip(found, fell, strict=True)]


def _without_reason(cause: Cause | None) -> bool:
    """Nothing that happened to its pod had to end it: that a pod was asked to go ends no stream yet."""
    return cause is None or cause.name == BEFORE_SIGTERM


def _own(
    row: Request, t_ns: int | None, fate: PodFate | None, time_scale: float, dead: Mapping[str, DeadNode]
) -> Cause | None:
    if t_ns is None:
        return Cause(UNEXPLAINED, "its end was not recorded")
    return _own_cause(row, fate, t_ns, time_scale, dead.get(fate.node_name)) if fate else None


def _until_ns(fates: Fates, fate: PodFate | None) -> int:
    return EVER_NS if fate is None else fates.span_ns(fate)[1]


def fell_ns(row: Request, active: Activity | None = None, until_ns: int = EVER_NS) -> int | None:
    """When it was cut. Of one that fell silent whoever gave it up did so later: what counts is its last token, or where
    it had none the last one that its pod gave anybody while it waited. ``until_ns``: then another had that name."""
    if row.end_ns is None:
        return None
    last_ns, patience_ns = row.last_token_ns, active.patience_ns if active else _SILENCE_NS
    if last_ns is None and active is not None and row.pod and row.sent_ns is not None:
        last_ns, patience_ns = (
            max(row.sent_ns, active.last_token_ns(row.pod, min(row.end_ns, until_ns)) or 0),
            active.first_patience_ns,
        )
    patient = row.outcome in (Outcome.STALLED, Outcome.DEADLINE)
    return last_ns if last_ns is not None and (patient or row.end_ns - last_ns > patience_ns) else row.end_ns


def _not_yet(row: Request, fates: Fates, active: Activity, time_scale: float) -> Cause | None:
    """It waited in vain for a pod that was Ready, and that gave anybody its first token only later: it still loaded."""
    pod, sent_ns, end_ns = row.pod or "", row.sent_ns, row.end_ns
    waited = row.outcome in (Outcome.STALLED, Outcome.DEADLINE) and row.first_token_ns is None
    fate = fates.of(row)
    if not waited or fate is None or sent_ns is None or end_ns is None:
        return None
    since_ns, until_ns = fates.span_ns(fate)
    first_ns = active.first_token_ns(pod, since_ns)
    if first_ns is None or not end_ns < first_ns < until_ns:
        return None
    then = fate.life.at(sent_ns)
    if then is None or not ready(then):
        return None
    after_s = scenario_s(first_ns - sent_ns, time_scale)
    return Cause(NOT_YET, f"{pod} gave its first token to anybody {after_s:.1f} s later", fell_ns=sent_ns)


def _fallen_silent(
    lost: Sequence[Request], fell: Sequence[int | None], own: Sequence[Cause | None],
    fates: Fates, active: Activity,
) -> dict[int, Cause]:  # fmt: skip
    """Requests, two of a pod at least, that waited in vain for a pod that gave nobody a token from then on. Where the
    first of them did so before its pod was asked to go, that the pod went explains none of them."""
    waiting: dict[str, tuple[PodFate, list[tuple[int, int]]]] = {}
    for row, t_ns, cause in zip(lost, fell, own, strict=True):
        going = cause is not None and cause.name in (BEFORE_SIGTERM, SIGTERM, GRACE_END)
        fate = fates.of(row)
        if (cause is not None and not going) or t_ns is None or fate is None or row.end_ns is None:
            continue
        last_ns = active.last_token_ns(fate.name, fates.span_ns(fate)[1]) or 0
        then = fate.life.at(t_ns)
        if last_ns <= t_ns + _NEAR_NS and row.end_ns > t_ns and (going or (then is not None and ready(then))):
            waiting.setdefault(fate.life.uid, (fate, []))[1].append((t_ns, row.request_id))
    found: dict[int, Cause] = {}
    for fate, rows in waiting.values():
        asked = fate.asked
        if len(rows) > 1 and (asked is None or min(rows)[0] < asked.t_ns - _NEAR_NS):
            found |= dict.fromkeys(
                (request for _, request in rows), Cause(SILENT, f"{fate.name} gave nobody a token any more")
            )
    return found


def _own_cause(row: Request, fate: PodFate, end_ns: int, time_scale: float, dead: DeadNode | None) -> Cause | None:
    """Something that happened to the pod itself, or to its node. What fits the moment best is asked first."""
    return (
        _node_lost(fate, end_ns, _NODE_NEAR_NS)
        or _sent_too_late(row, fate, time_scale)
        or _going(row, fate, end_ns, time_scale)
        or _node_lost(fate, end_ns, round(_SILENT_S / time_scale * NS_PER_S))
        or _crashed(fate, end_ns, time_scale)
        or (Cause(NODE_DEAD, dead.detail) if dead is not None and end_ns >= dead.since_ns else None)
        or _refused(row)
    )


def _going(row: Request, fate: PodFate, end_ns: int, time_scale: float) -> Cause | None:
    """That its pod was asked to go ends no stream yet, where its node is found lost a moment later."""
    going = _terminating(fate, _told_ns(row, fate, end_ns, time_scale), time_scale)
    if going is not None and going.name == BEFORE_SIGTERM:
        return _node_lost(fate, end_ns, round(_SILENT_S / time_scale * NS_PER_S)) or going
    return going


def _told_ns(row: Request, fate: PodFate, end_ns: int, time_scale: float) -> int:
    """Of a request without a token, on a pod that was asked to go, nobody saw when it was given up: it could still be
    answered until its server was told to stop."""
    if fate.asked is None or row.first_token_ns is not None or end_ns < fate.asked.t_ns:
        return end_ns
    told_ns = fate.asked.t_ns + span_ns(fate.pre_stop_s, time_scale)
    return max(end_ns, told_ns) if (row.end_ns or 0) >= told_ns else end_ns


def _node_lost(fate: PodFate, end_ns: int, within_ns: int) -> Cause | None:
    """Streams fall with the instance; that it is gone, or silent, is known to the API some time later."""
    node = fate.node
    if node is None:
        return None
    for t_ns, what in ((node.gone_ns, "was gone"), (node.silent_ns, "fell silent")):
        ended_before = t_ns is not None and fate.ended is not None and fate.ended.t_ns < t_ns
        if t_ns is not None and not ended_before and t_ns <= end_ns + within_ns:
            return Cause(NODE_LOST, f"{node.name} {what} while {fate.name} still served")
    return None


def _terminating(fate: PodFate, end_ns: int, time_scale: float) -> Cause | None:
    if fate.asked is None or fate.asked.t_ns > end_ns + _NEAR_NS:
        return None
    return replace(_how_it_went(fate, fate.asked, end_ns, time_scale), fell_ns=end_ns)


def _how_it_went(fate: PodFate, asked: ObjectEvent, end_ns: int, time_scale: float) -> Cause:
    near_s = scenario_s(_NEAR_NS, time_scale)
    after_s = max(0.0, scenario_s(end_ns - asked.t_ns, time_scale))
    when = f"{after_s:.1f} s after {fate.name} was asked to go"
    code = exit_code(fate.ended.object) if fate.ended else None
    killed = code == 137 and fate.ended is not None and abs(fate.ended.t_ns - end_ns) <= _NODE_NEAR_NS
    if killed and after_s < fate.grace_s - near_s - _SETTLE_S:
        return Cause(KILLED_EARLY, f"{when}, preStop {fate.pre_stop_s:.0f} s, grace {fate.grace_s:.0f} s", asked)
    if killed or after_s >= fate.grace_s - near_s:
        return Cause(GRACE_END, f"{when}, grace {fate.grace_s:.0f} s", asked)
    if after_s >= fate.pre_stop_s - near_s:
        return Cause(SIGTERM, f"{when}, preStop {fate.pre_stop_s:.0f} s, grace {fate.grace_s:.0f} s", asked)
    return Cause(BEFORE_SIGTERM, f"{when}, preStop {fate.pre_stop_s:.0f} s", asked)


def _sent_too_late(row: Request, fate: PodFate, time_scale: float) -> Cause | None:
    """It never got a token, and its pod had been asked to go long enough for every router to know."""
    if fate.asked is None or row.sent_ns is None or row.first_token_ns is not None:
        return None
    if row.sent_ns <= fate.asked.t_ns + _NEAR_NS:
        return None
    after_s = scenario_s(row.sent_ns - fate.asked.t_ns, time_scale)
    routing = "its endpoint still took new work"
    if fate.closed_ns is not None and fate.closed_ns <= row.sent_ns:
        routing = f"its endpoint had been closed for {scenario_s(row.sent_ns - fate.closed_ns, time_scale):.1f} s"
    return Cause(SENT_TOO_LATE, f"{after_s:.1f} s after {fate.name} was asked to go; {routing}", fate.asked)


def _refused(row: Request) -> Cause | None:
    """The server said no before any token, as a pod does that is Ready before it can serve: no stream was cut."""
    if row.outcome != Outcome.HTTP_5XX or row.first_token_ns is not None:
        return None
    return Cause(REFUSED, row.reason or f"status {row.status}")


def _crashed(fate: PodFate, end_ns: int, time_scale: float) -> Cause | None:
    """A container that ended at about the time, though nobody asked its pod to go."""
    told_ns = max(_NODE_NEAR_NS, span_ns(_TOLD_S * fate.kubelet_s, time_scale))
    for event in fate.life.seen:
        if -_NODE_NEAR_NS <= event.t_ns - end_ns <= told_ns and (
            restarted(event.object) or exit_code(event.object) is not None
        ):
            reason = event.object.get("status", {}).get("reason")
            return Cause(CONTAINER_ENDED, f"exit {exit_code(event.object)}{f', {reason}' if reason else ''}", event)
    return None


def _gateway(
    row: Request, t_ns: int | None, orphans: Sequence[tuple[int, str, int]], active: Activity | None
) -> Cause | None:
    """No pod was named, or most streams of several pods fell in the same moment while the pods went on."""
    if row.outcome in (Outcome.STALLED, Outcome.DEADLINE):
        return None  # silence says nothing of who fell silent: the gateway, or servers behind it
    if row.pod is None:
        return Cause(GATEWAY, "before any pod was named")
    end_ns = t_ns or 0
    first = bisect_left(orphans, (end_ns - _NEAR_NS, "", 0))
    last = bisect_left(orphans, (end_ns + _NEAR_NS + 1, "", 0))
    together = {pod for _, pod, _ in orphans[first:last]}
    if row.pod not in together or len(together) < 2:
        return None
    lasted = [ns for *_, ns in orphans[first:last]]
    if max(lasted) < min(lasted) * _ALIKE:
        return None  # each had lasted as long as the others: a limit on time, and no common moment
    if active is not None and last - first < _TOGETHER * active.in_flight(end_ns - _NEAR_NS):
        return None  # by chance: most went on
    return Cause(GATEWAY, f"streams of {len(together)} pods fell in the same moment, and the pods went on")


def _nothing_seen(row: Request, fate: PodFate | None) -> str:
    if row.pod is None:
        return "nothing came that names a pod: it waited at the gateway, or at a server behind it"
    if row.outcome in (Outcome.STALLED, Outcome.DEADLINE) and fate is not None:
        return f"no more came from {fate.name}, which went on by the API's account"
    if fate is None:
        return f"pod {row.pod} is not in the recording"
    return f"{fate.name} went on, and nothing was seen to happen to it or its node"
