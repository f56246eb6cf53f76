"""Requests that were cut, refused or left without an answer: who did that to them, by what happened to their pods."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from numpy import isnan

from harness.checks import causes
from harness.checks.departures import exit_code
from harness.checks.drain_story import finish_streams, longest_stream_s
from harness.checks.hurried import hurried_pods
from harness.checks.rows import Request
from harness.checks.units import count, listed
from harness.diagnosis.case import Case
from harness.diagnosis.lost_nodes import node_dead, node_lost
from harness.diagnosis.lost_telling import Lost, suspect_of
from harness.diagnosis.scope import pods_hit
from harness.diagnosis.suspect import (
    DRAIN,
    ENDPOINTS,
    GATEWAY,
    KUBELET,
    PROBE,
    REPLICA_SETS,
    SERVER,
    WORKLOAD,
    Sure,
    Suspect,
)
from harness.verdict import Evidence

if TYPE_CHECKING:
    from harness.checks.causes import Cause

_HANGS_NS = 2_000_000_000


def lost_requests(case: Case) -> Iterator[Suspect]:
    """One suspect for each kind of cause; what nothing bears out is left to the rules about patterns."""
    by: dict[str, list[tuple[Request, Cause]]] = {}
    for row, cause in case.lost:
        by.setdefault(cause.name, []).append((row, cause))
    for name, tell in _TELLERS.items():
        if own := sorted(by.get(name, ()), key=lambda pair: pair[1].fell_ns or 0):
            yield from tell(case, own)


def _went(case: Case) -> list[str]:
    """Pods that were asked to go while requests could reach them: those that a fault of going may hit."""
    return [fate.name for fate in case.fates.lives if fate.asked is not None]


def _at_sigterm(case: Case, own: Lost) -> Iterator[Suspect]:
    """Told to stop, the server drops its streams, or says nothing any more; the preStop hook was over."""
    silent = [pair for pair in own if pair[0].end_ns and pair[0].end_ns - (pair[1].fell_ns or 0) > _HANGS_NS]
    fate = case.fate(own[0][0])
    longest_s = longest_stream_s(case.history)
    after = [case.s((c.fell_ns or 0) - _asked(case, row)) for row, c in own]
    span = f"{min(after):.0f} s" if max(after) - min(after) < 1 else f"{min(after):.0f} to {max(after):.0f} s"
    what = count(len(own), "stream")
    act = f"cut {what} on SIGTERM, {span} after the pods were asked to go (preStop {fate.pre_stop_s:.0f} s, grace "
    act += f"{fate.grace_s:.0f} s)"
    if len(silent) > len(own) / 2:
        act = f"fell silent in {what} at SIGTERM: no token came any more, and no end, until the clients gave them up"
        act += " or the grace was over"
    yield suspect_of(case, own, SERVER, act, among=_went(case), change=finish_streams(fate, longest_s))


def _ended(case: Case, own: Lost) -> Iterator[Suspect]:
    """Containers that ended by themselves, though nobody had asked their pods to go."""
    codes = Counter(exit_code(cause.seen.object) if cause.seen else None for _, cause in own)
    pods = sorted({row.pod for row, _ in own if row.pod})
    code = codes.most_common(1)[0][0]
    reason = next((c.seen.object.get("status", {}).get("reason") for _, c in own if c.seen), None)
    killed = code == 137
    how = "was killed" if killed else "ended by itself"
    said = f"exit code {code}{', SIGKILL: out of memory, as a rule' if killed else ''}{f', {reason}' if reason else ''}"
    act = (
        f"{how} in the middle of its work in {count(len(pods), 'pod')} ({said}), and {count(len(own), 'request')} fell"
    )
    act += " with it"
    busy = _busy(case, own[0])
    change = f"see the last lines of its log{busy}" + (
        "; lower --gpu-memory-utilization or --max-num-seqs" if killed else ""
    )
    yield suspect_of(case, own, SERVER, act, change=change)


def _busy(case: Case, first: tuple[Request, Cause]) -> str:
    row, cause = first
    places, t_ns = case.rows.places("pod").get(row.pod or ""), cause.fell_ns
    if places is None or t_ns is None:
        return ""
    sent, end = case.rows.numbers("sent_ns")[places], case.rows.numbers("end_ns")[places]
    n = int(((sent < t_ns) & ~(end < t_ns - _HANGS_NS // 20)).sum())
    return f" (it had {count(n, 'request')} at that moment)"


def _silent(case: Case, own: Lost) -> Iterator[Suspect]:
    """The process is there and Ready, and gives nobody a token any more."""
    pods = sorted({row.pod for row, _ in own if row.pod})
    served = Counter(
        pod for pod, places in case.rows.places("pod").items() for _ in range(int(case.rows.ok[places].sum()))
    )
    before = [served[pod] for pod in pods]
    never = all(row.headers_ns is None for row, _ in own)
    what = "took connections and answered nothing any more" if never else "fell silent"
    span = f"{min(before)}" if len(set(before)) == 1 else f"{min(before)} to {max(before)}"
    act = f"{what} in {count(len(pods), 'pod')}, after {span} requests each, while the API called "
    act += f"{'it' if len(pods) == 1 else 'them'} Ready: {count(len(own), 'request')} got no token more"
    rows = tuple(_silence(case, pod, own) for pod in pods)
    change = "let a liveness probe ask for a token, and not only /health, so that a server that hangs is restarted"
    yield suspect_of(case, own, SERVER, act, seen=rows, change=change)


def _not_yet(case: Case, own: Lost) -> Iterator[Suspect]:
    """Pods that took requests and gave nobody a token until much later. Who asks whether a pod is Ready was told so."""
    pods = {row.pod for row, _ in own if row.pod}
    silent = [pair for pair in case.lost if pair[1].name == causes.SILENT and not _ever_served(case, pair[0].pod)]
    both = sorted([*own, *silent], key=lambda pair: pair[1].fell_ns or 0)
    act = (
        f"let {count(len(pods), 'pod')} be Ready before they served: {count(len(own), 'request')} waited there in vain"
    )
    never = {row.pod for row, _ in silent}
    if never:
        act += f", and {len(silent)} in {count(len(never), 'pod')} that never served at all"
    yield suspect_of(case, both, PROBE, act, change="let the readiness probe ask what only a loaded model answers")


def _ever_served(case: Case, pod: str | None) -> bool:
    places = case.rows.places("pod").get(pod or "")
    return places is not None and not bool(isnan(case.rows.numbers("first_token_ns")[places]).all())


def _silence(case: Case, pod: str, own: Lost) -> Evidence:
    fell = [cause.fell_ns or 0 for row, cause in own if row.pod == pod]
    end = max(row.end_ns or 0 for row, _ in own if row.pod == pod)
    fate = next(case.fate(row) for row, _ in own if row.pod == pod)
    going = f"; it was asked to go at {case.at(fate.asked.t_ns)}" if fate.asked else ""
    text = (
        f"{pod} on {fate.node_name}: silent since {case.at(min(fell))} of the load, Ready; {len(fell)} requests"
        " waited in "
    )
    text += f"vain, the last until {case.at(end)}{going}"
    return Evidence(f"objects:{fate.life.seen[-1].index}", min(fell), text, {"pod": pod, "node": fate.node_name})


def _sent_late(case: Case, own: Lost) -> Iterator[Suspect]:
    """New work for pods that are going: by a router that knows better, or by one that was not told."""
    closed = [pair for pair in own if "had been closed" in pair[1].detail]
    open_ = [pair for pair in own if pair not in closed]
    if closed:
        late = max(_closed_for(case, row) for row, _ in closed)
        n = len({row.pod for row, _ in closed})
        act = f"sent {count(len(closed), 'request')} to {count(n, 'pod')} that {'was' if n == 1 else 'were'} already "
        act += f"going, up to {late:.1f} s after their endpoints had been closed"
        change = (
            "see its watch of EndpointSlices, its cache and its retries: it must drop an endpoint that is not ready"
        )
        yield suspect_of(case, closed, GATEWAY, act, among=_went(case), change=change)
    if open_:
        late = max(case.s((row.sent_ns or 0) - _asked(case, row)) for row, _ in open_)
        n = len({row.pod for row, _ in open_})
        act = f"kept {count(n, 'pod')} in the EndpointSlice as ready for new work up to {late:.1f} s after "
        act += (
            f"{'it was' if n == 1 else 'they were'} asked to go: {count(len(open_), 'request')} went there and were"
            " lost"
        )
        change = "see the log and the queue of the controller that writes EndpointSlices"
        yield suspect_of(case, open_, ENDPOINTS, act, among=_went(case), change=change)


def _asked(case: Case, row: Request) -> int:
    asked = case.fate(row).asked
    return asked.t_ns if asked else 0


def _closed_for(case: Case, row: Request) -> float:
    closed = case.fate(row).closed_ns
    return case.s((row.sent_ns or 0) - (closed or row.sent_ns or 0))


def _killed_early(case: Case, own: Lost) -> Iterator[Suspect]:
    fate = case.fate(own[0][0])
    nodes = {row.node for row, _ in own if row.node}
    after = [case.s((c.fell_ns or 0) - _asked(case, row)) for row, c in own]
    span = f"{min(after):.1f}" if max(after) - min(after) < 0.1 else f"{min(after):.1f} to {max(after):.1f}"
    act = f"killed {count(len({row.pod for row, _ in own}), 'pod')} {span} s after the deletion, though the "
    act += f"grace is {fate.grace_s:.0f} s: {count(len(own), 'stream')} cut"
    otherwise = (
        "somebody may have deleted the pods a second time with a shorter grace: deletionGracePeriodSeconds of the "
    )
    otherwise += f"pod, {fate.grace_s:.0f} s when last seen, would show it"
    scope = pods_hit(case, {r.pod for r, _ in own if r.pod}, _went(case))
    yield suspect_of(
        case,
        own,
        f"{KUBELET} of {listed(sorted(nodes))}",
        act,
        scope=scope,
        otherwise=otherwise,
        change="see the kubelet's log of that moment",
    )


def _grace_over(case: Case, own: Lost) -> Iterator[Suspect]:
    """Each part did as it was told: what the pods were given is shorter than what they do."""
    fate = case.fate(own[0][0])
    longest_s = longest_stream_s(case.history)
    if fate.grace_s < fate.spec_grace_s:
        pods = {row.pod for row, _ in own if row.pod}
        away = all(case.fate(row).scaled_away for row, _ in own)
        act = (
            f"deleted {count(len(pods), 'pod')} with a grace of {fate.grace_s:.0f} s, though their spec says"
            f" {fate.spec_grace_s:.0f} s"
        )
        act += f"{' when fewer replicas were wanted' if away else ''}: {count(len(own), 'stream')} cut"
        yield suspect_of(
            case,
            own,
            REPLICA_SETS if away else f"{DRAIN}, or whoever else deletes pods,",
            act,
            among=_went(case),
            otherwise="" if away else "the audit log of the deletion names who asked for that grace",
        )
        return
    act = f"a grace of {fate.grace_s:.0f} s is shorter than answers last (up to {longest_s:.0f} s): "
    act += f"{count(len(own), 'stream')} killed at the end of it"
    need_s = math.ceil(fate.pre_stop_s + longest_s) + 5
    change = f"set terminationGracePeriodSeconds to {need_s} s or more"
    yield suspect_of(case, own, WORKLOAD, act, among=_went(case), sure=Sure.SETTING, change=change)


def _before_sigterm(case: Case, own: Lost) -> Iterator[Suspect]:
    if early := hurried_pods(case.fates.lives, case.scale):
        names = {h.fate.name for h in early}
        own = [pair for pair in own if pair[0].pod not in names]
    if own:
        n = count(len({row.pod for row, _ in own}), "pod")
        act = f"cut {count(len(own), 'stream')} of {n} that had been asked to go and not yet been told to stop"
        yield suspect_of(
            case,
            own,
            GATEWAY,
            act,
            sure=Sure.INFERRED,
            otherwise="the server's own log would tell: it has no SIGTERM yet",
        )


def _gateway_cut(case: Case, own: Lost) -> Iterator[Suspect]:
    moments = sorted({round(case.s((c.fell_ns or 0) - case.start_ns)) for _, c in own})
    pods = {row.pod for row, _ in own if row.pod}
    if not pods:
        act = f"ended {count(len(own), 'request')} before any pod was named"
        otherwise = "a server whose answer does not name it looks the same: the gateway's access log would tell"
        yield suspect_of(case, own, GATEWAY, act, sure=Sure.INFERRED, otherwise=otherwise)
        return
    else:
        left = _leaving_at(case, [c.fell_ns or 0 for _, c in own])
        act = f"cut {count(len(own), 'stream')} of {count(len(pods), 'pod')} at once, {count(len(moments), 'time')}"
        act += f"{left}, while the pods went on"
    change = "a change of its endpoints, a reload or a restart must let streams end: see its log of these moments"
    yield suspect_of(case, own, GATEWAY, act, change=change)


def _leaving_at(case: Case, moments: list[int]) -> str:
    """Whether each time an endpoint had just left."""
    closed = sorted(f.closed_ns for f in case.fates.lives if f.closed_ns is not None)
    near = [any(0 <= t - c <= case.ns(15) + 500_000_000 for c in closed) for t in moments]
    return " each time an endpoint had left" if all(near) else ""


def _refused(case: Case, own: Lost) -> Iterator[Suspect]:
    """Errors of pods that are in service are the server's; who cannot be reached is told by the rules of readiness."""
    own = [pair for pair in own if "connection" not in pair[1].detail and pair[0].pod]
    if not own:
        return
    asked = sum(len(case.rows.places("pod")[pod]) for pod in {row.pod for row, _ in own if row.pod})
    status = Counter(row.status for row, _ in own).most_common(1)[0][0]
    often = f" (one in {round(asked / len(own))})" if asked >= 2 * len(own) else ""
    act = f"answered {count(len(own), 'request')} of {asked} with status {status} while its pods were Ready{often}"
    change = f"see the log of {own[0][0].pod} at that moment: its answer was {own[0][1].detail[:120]}"
    yield suspect_of(case, own, SERVER, act, change=change)


_TELLERS = {
    causes.SIGTERM: _at_sigterm,
    causes.CONTAINER_ENDED: _ended,
    causes.NOT_YET: _not_yet,
    causes.SILENT: _silent,
    causes.SENT_TOO_LATE: _sent_late,
    causes.KILLED_EARLY: _killed_early,
    causes.GRACE_END: _grace_over,
    causes.BEFORE_SIGTERM: _before_sigterm,
    causes.GATEWAY: _gateway_cut,
    causes.REFUSED: _refused,
    causes.NODE_DEAD: node_dead,
    causes.NODE_LOST: node_lost,
}
