"""Gangs that held a part of what they need: who bound them so, or left them so."""

from __future__ import annotations

from collections.abc import Iterator

from harness.checks.gang import Gang, Partial, deadlocked, gangs_of
from harness.checks.units import listed
from harness.diagnosis.case import SHOWN, Case
from harness.diagnosis.suspect import GANG_CONTROLLER, SCHEDULER, Suspect
from harness.history.lives import condition, node_of
from harness.verdict import Evidence

_BREAKS = frozenset({"gang", "recovery", "capacity", "baseline"})
_ATOMIC_S = 5.0
_WAITS_S = 120.0


def gangs(case: Case) -> Iterator[Suspect]:
    every = gangs_of(case.history)
    apart = [(g, p) for g in every for p in g.partials if not p.lost and p.length_ns > case.ns(_ATOMIC_S)]
    lost = [(g, p) for g in every for p in g.partials if p.lost and p.length_ns > case.ns(_WAITS_S)]
    if apart:
        yield _bound_in_part(case, apart)
    if lost:
        yield _not_whole_again(case, lost)


def _bound_in_part(case: Case, apart: list[tuple[Gang, Partial]]) -> Suspect:
    """All at once or none: who binds is the scheduler."""
    gang, partial = max(apart, key=lambda pair: pair[1].length_ns)
    stuck = deadlocked(apart)
    until = case.history.recorded_until_ns
    if len(stuck) > 1:
        names = listed([g.group.name for g in stuck])
        act = (
            f"bound members of {names} one by one into room for one gang: each holds what another waits for, for"
            f" {case.span(partial.length_ns)}"
        )
    else:
        rest = "no other got a node" if partial.end_ns >= until or _never(gang) else "the rest came later"
        act = (
            f"bound members of {gang.group.name} one by one: {partial.bound} of {gang.need} held GPUs for"
            f" {case.span(partial.length_ns)}, and {rest}"
        )
    seen = [
        (e.t_ns, m.name, node_of(e.object), e.index)
        for m in gang.members
        if (e := m.when(lambda pod: bool(node_of(pod)))) is not None
    ]
    rows = tuple(
        Evidence(f"objects:{i}", t, f"{name} was bound to {node}") for t, name, node, i in sorted(seen)[:SHOWN]
    )
    rows += tuple(
        Evidence(f"objects:{m.seen[-1].index}", None, f"{m.name} never got a node")
        for m in gang.members
        if not node_of(m.last)
    )
    names_ = [g.group.name for g, _ in apart]
    others = [g.group.name for g in gangs_of(case.history) if g.group.name not in names_]
    scope = f"hit: {listed(sorted(set(names_)))}" + (f"; not hit: {listed(others)}" if others else "")
    return Suspect(
        SCHEDULER,
        act,
        min(p.start_ns for _, p in apart),
        _BREAKS,
        scope=scope,
        seen=rows,
        change="let a scheduler place the group that knows gangs, and only when all of it fits",
    )


def _never(gang: Gang) -> bool:
    return any(not node_of(member.last) for member in gang.members)


def _not_whole_again(case: Case, lost: list[tuple[Gang, Partial]]) -> Suspect:
    """A member went. Was another made; and if so, what became of it? Its own scheduler's word is asked first."""
    gang, partial = max(lost, key=lambda pair: pair[1].length_ns)
    newcomers = [m for m in gang.members if m.born_ns >= partial.start_ns - case.ns(2)]
    waiting = [m for m in newcomers if m.when(lambda pod: bool(node_of(pod))) is None]
    held = (
        f"{gang.group.name} held {partial.bound} of {gang.need} for {case.span(partial.length_ns)} after it lost a"
        " member"
    )
    silent = [m for m in waiting if not condition(m.last, "PodScheduled")]
    if silent:
        names = listed([m.name for m in silent])
        act = f"neither placed nor refused {names}, made in the place of a member that was lost: {held}"
        rows = tuple(
            Evidence(f"objects:{m.seen[-1].index}", m.born_ns, f"{m.name}: no node, no condition PodScheduled")
            for m in silent
        )
        return Suspect(
            SCHEDULER,
            act,
            min(m.born_ns for m in silent),
            _BREAKS,
            seen=rows,
            change="see the scheduler's log for these pods",
        )
    if waiting:
        said = condition(waiting[0].last, "PodScheduled").get("message") or "no reason"
        act = f"left the rest of {gang.group.name} where it was while {waiting[0].name} found no room ({said}): {held}"
    else:
        act = f"made no other member and left the rest where it was: {held}"
    row = Evidence(f"objects:{partial.event.index}", partial.start_ns, held)
    return Suspect(
        GANG_CONTROLLER,
        act,
        partial.start_ns,
        _BREAKS,
        seen=(row,),
        change="restart or evict the rest when a member is lost and cannot be replaced in time",
    )
