"""A gang holds GPUs for as many members as it needs at least, or for none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.gang_generations import Mixed, mixed
from harness.checks.gang_groups import Group, groups_of
from harness.checks.gang_topology import Apart, constrained, spread, unplaced
from harness.checks.machine_did_not_stall import stalls
from harness.checks.sight import blind
from harness.checks.stories import gang_story, mixed_story, spread_story
from harness.checks.units import NS_PER_S, both, count, listed, scenario_s, span_ns
from harness.history.lives import Json, Life, going, gpus_of, node_of, terminal, unschedulable
from harness.history.recording import once
from harness.history.tables import ObjectEvent
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import GangSpec


_BLINDING = frozenset({"Pod", "PodGroup"})
_TEARDOWN_NS = NS_PER_S
"""Whoever deletes a gang deletes its members and its group one after another; that breaks no promise."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A time in which a gang held some, but not enough."""

    start_ns: int
    end_ns: int
    bound: int
    """How many held their place; where that changed, what lasted longest."""
    gpu_ns: int
    event: ObjectEvent
    lost: bool
    """It had been whole and lost a member, so that it waits for another; otherwise only a part of it was bound."""
    bound_ns: int
    """For how long so many did."""

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Gang:
    group: Group
    need: int
    """Of members; where nothing says so, as many as there ever were at once."""
    partials: tuple[Partial, ...]
    perhaps: tuple[Partial, ...]
    """Where nothing says how many it needs: times with fewer members than there once were."""
    short: bool
    """A member found no room."""
    lost: int
    """Members that were bound and went."""

    @property
    def members(self) -> tuple[Life, ...]:
        return self.group.members

    @property
    def exercised(self) -> bool:
        return self.short or self.lost > 0

    @property
    def longest(self) -> Partial | None:
        return max(self.partials, key=lambda p: p.length_ns, default=None)


def gang(history: History, spec: GangSpec) -> Finding:
    """Binding a gang is not atomic at the API, so a part may be bound for ``atomicity_s_max`` scenario seconds.

    A gang that lost a member is another matter: the rest holds its GPUs for ``whole_again_s_max`` at most. A member
    that has finished its work counts as there.

    One that must be within one domain (``schedulingConstraints.topology``) and is not breaks its promise at once; so
    does a group of a LeaderWorkerSet that is to be made anew as a whole after a loss, and has a new member beside old
    ones for longer than ``atomicity_s_max``.

    UNKNOWN when no gang met a shortage, lost a member or was placed within a domain, when one went on with fewer
    members than it once had and nothing recorded says how many it needs, when one was partly bound as the recording
    ended, before its time was up, when the recorder was blind, or the machine stood still, within the time in which a
    gang seemed to be partly bound, and when it was blind for pods since the first gang came and nothing was seen to be
    wrong.
    """
    gangs = [g for g in gangs_of(history) if g.members]
    apart = [found for g in gangs if (found := spread(history, g.group)) is not None]
    limit_ns = span_ns(spec.atomicity_s_max, history.run.time_scale)
    halves = [half for g in gangs if (half := mixed(history, g.group, limit_ns)) is not None]
    others: list[Apart | Mixed] = [*apart, *halves]
    together = [g for g in gangs if constrained(g.group) and any(node_of(m.last) for m in g.members)]
    tested = [g for g in gangs if g.exercised or g in together]
    broken = [(g, p) for g in gangs for p in g.partials if p.length_ns > _limit_ns(history, spec, p)]
    surely = [(g, p) for g, p in broken if not (_blind(history, p) or _stood_still(history, spec, p))]
    scale = history.run.time_scale
    if surely or others:
        said = [_broken_sentence(surely, spec, scale)] if surely else []
        status, sentence = Status.FAIL, "; ".join([*said, *map(str, others)])
    elif broken:
        status = Status.UNKNOWN
        why = "the recorder was blind" if any(_blind(history, p) for _, p in broken) else "the machine stood still"
        sentence = f"{why} while a gang seemed partly bound: {_broken_sentence(broken, spec, scale)}"
    elif not tested:
        status = Status.UNKNOWN
        sentence = f"{count(len(gangs), 'gang')}, but none met a shortage or lost a member, so none was put to the test"
    elif nowhere := [(g, node) for g in together for node in unplaced(history, g.group)]:
        status, (one, node) = Status.UNKNOWN, nowhere[0]
        sentence = (
            f"{one.group.name} must be within one {constrained(one.group)}, and that of {node} was never recorded"
        )
    elif unsaid := [(g, p) for g in gangs for p in g.perhaps if p.length_ns > _limit_ns(history, spec, p)]:
        status, (one, p) = Status.UNKNOWN, unsaid[0]
        went_on = f"{one.group.name} went on with {p.bound} of {one.need} members for {both(p.length_ns, scale)}"
        sentence = f"{went_on}, and nothing recorded says how many it needs"
    elif open_ := [(g, p) for g in gangs for p in g.partials if _is_open(history, g, p)]:
        status, (one, p) = Status.UNKNOWN, open_[0]
        sentence = (
            f"{one.group.name} held {p.bound} of the {one.need} members it needs when the recording ended, after "
            f"{both(p.length_ns, scale)}, before its time was up"
        )
    elif (gap := blind(history, _BLINDING, min(g.group.born_ns for g in tested))) is not None:
        status = Status.UNKNOWN
        sentence = f"no gang was seen to be partly bound, but the recorder was blind for {gap.kind}"
    else:
        status, sentence = Status.PASS, _held_sentence(gangs, tested, len(together), spec, scale)
    numbers = _numbers(gangs, spec, scale) | {
        "spread_over_domains": len(apart), "of_before_and_after_a_loss": len(halves),
    }  # fmt: skip
    story = _story(history, spec, surely, others)
    evidence = (*map(_apart_row, others), *_evidence(gangs, broken, scale))
    return Finding("gang", Role.CHECK, status, sentence, len(tested), numbers, evidence, story=story)


def _longest_ns(gangs: Sequence[Gang], *, lost: bool) -> int:
    """For which one of them was partly bound: at first, or after it had ``lost`` a member."""
    return max((p.length_ns for g in gangs for p in g.partials if p.lost is lost), default=0)


def _wasted_s(gangs: Sequence[Gang], scale: float) -> float:
    return scenario_s(sum(p.gpu_ns for g in gangs for p in g.partials), scale)


def _numbers(gangs: Sequence[Gang], spec: GangSpec, scale: float) -> dict[str, Value]:
    first, again = _longest_ns(gangs, lost=False), _longest_ns(gangs, lost=True)
    return {
        "atomicity_s_max": spec.atomicity_s_max,
        "whole_again_s_max": _limit_s(spec, lost=True),
        "gangs": len(gangs),
        "gangs_short": sum(1 for g in gangs if g.short),
        "members_lost": sum(g.lost for g in gangs),
        "partial_s_longest": scenario_s(max(first, again), scale),
        "partial_after_loss_s_longest": scenario_s(again, scale),
        "gpu_s_wasted": _wasted_s(gangs, scale),
    }


def _held_sentence(gangs: Sequence[Gang], tested: Sequence[Gang], together: int, spec: GangSpec, scale: float) -> str:
    first, regained = _longest_ns(gangs, lost=False), _longest_ns(gangs, lost=True)
    short, lost = sum(1 for g in tested if g.short), sum(1 for g in tested if g.lost)
    limit = f"limit {_limit_s(spec, lost=True):.0f} s"
    again = f", whole again within {both(regained, scale)} of a loss ({limit})" if regained else ""
    within = f", {together} within one domain each" if together else ""
    return (
        f"{count(len(tested), 'gang')} put to the test ({short} met a shortage, {lost} lost a member{within}): "
        f"never partly bound for longer than {both(first, scale)} (limit {spec.atomicity_s_max:.0f} s){again}, "
        f"{_wasted_s(gangs, scale):.1f} GPU-seconds held in vain"
    )


def _story(
    history: History, spec: GangSpec, surely: Sequence[tuple[Gang, Partial]], others: Sequence[Apart | Mixed]
) -> str:
    if surely:
        return gang_story(history, surely, _limit_s(spec, lost=surely[0][1].lost), deadlocked(surely))
    if not others:
        return ""
    first = others[0]
    return spread_story(history, first) if isinstance(first, Apart) else mixed_story(history, first)


@once
def gangs_of(history: History) -> tuple[Gang, ...]:
    """Every gang, by whatever system it is one."""
    last_ns = history.recorded_until_ns
    found: list[Gang] = []
    for group in groups_of(history):
        members = group.members
        over = (group.object.when(going) if group.object else None) or group.gone
        end_ns = over.t_ns - _TEARDOWN_NS if over else last_ns
        found.append(
            Gang(
                group,
                group.need if group.need is not None else _most_at_once(members),
                partials(members, group.need, end_ns),
                _perhaps(members, end_ns) if group.need is None else (),
                any(m.when(unschedulable) for m in members),
                sum(1 for m in members if (left := _left(m)) is not None and left < end_ns),
            )
        )
    return tuple(found)


def _most_at_once(members: Sequence[Life]) -> int:
    events = sorted((e for m in members for e in m.seen), key=lambda e: e.index)
    return max((_wanted(members, event) for event in events), default=0)


def _wanted(members: Sequence[Life], event: ObjectEvent) -> int:
    """Members that are there, placed or not, and are not on their way out."""
    versions = (_version(member, event) for member in members)
    return sum(1 for pod in versions if pod is not None and not going(pod) and not terminal(pod))


def holds(pod: Json | None) -> bool:
    """Whether it keeps its place: bound, not ended, not on its way out."""
    return pod is not None and bool(node_of(pod)) and not terminal(pod) and not going(pod)


def finished(pod: Json) -> bool:
    """Whether it did its work to the end, so that it needs no place any more."""
    return pod.get("status", {}).get("phase") == "Succeeded" and not going(pod)


def partials(members: Sequence[Life], need: int | None, end_ns: int) -> tuple[Partial, ...]:
    """Times with at least one and fewer than ``need`` members placed, joined where they touch. Without a ``need`` each
    member that is there needs all others."""
    found: list[Partial] = []
    was_whole = False
    ended = [m.when(finished) for m in members]
    events = sorted((e for m in members for e in m.seen), key=lambda e: e.index)
    for event, following in zip(events, [*events[1:], None][: len(events)], strict=True):
        until = min(end_ns, following.t_ns if following else end_ns)
        bound = [m for m in members if holds(_version(m, event))]
        there = len(bound) + sum(1 for done in ended if done is not None and done.index <= event.index)
        lost, was_whole = was_whole, there >= (_wanted(members, event) if need is None else need)
        if not bound or was_whole or until < event.t_ns:
            continue
        gpu_ns = sum(gpus_of(m.last) for m in bound) * (until - event.t_ns)
        if found and found[-1].end_ns == event.t_ns:
            found.append(_joined(found.pop(), until, len(bound), gpu_ns))
        else:
            found.append(Partial(event.t_ns, until, len(bound), gpu_ns, event, lost, until - event.t_ns))
    return tuple(p for p in found if p.length_ns > 0)


def _perhaps(members: Sequence[Life], end_ns: int) -> tuple[Partial, ...]:
    """Times after a loss with fewer members than there once were."""
    return tuple(p for p in partials(members, _most_at_once(members), end_ns) if p.lost)


def _joined(last: Partial, until: int, bound: int, gpu_ns: int) -> Partial:
    at_once_ns = until - last.end_ns + (last.bound_ns if bound == last.bound else 0)
    bound, at_once_ns = max((at_once_ns, bound), (last.bound_ns, last.bound))[::-1]
    return Partial(last.start_ns, until, bound, last.gpu_ns + gpu_ns, last.event, last.lost, at_once_ns)


def _version(pod: Life, event: ObjectEvent) -> Json | None:
    if pod.gone is not None and pod.gone.index <= event.index:
        return None
    return next((e.object for e in reversed(pod.seen) if e.index <= event.index), None)


def _left(pod: Life) -> int | None:
    """When a member that was bound stopped holding its place."""
    if not node_of(pod.last) or pod.when(finished):
        return None
    left = pod.when(lambda obj: going(obj) or terminal(obj)) or pod.gone
    return left.t_ns if left else None


def _blind(history: History, partial: Partial) -> bool:
    return any(
        gap.kind in _BLINDING and (gap.since_ns or 0) < partial.end_ns and gap.t_ns > partial.start_ns
        for gap in history.gaps
    )


def _is_open(history: History, gang: Gang, partial: Partial) -> bool:
    """Whether it might have gone on beyond the limit after the recording's end."""
    ended = gang.group.gone is not None or partial.end_ns < history.recorded_until_ns
    return not ended and partial.length_ns > _TEARDOWN_NS


def _limit_s(spec: GangSpec, *, lost: bool) -> float:
    return spec.whole_again_s_max if lost and spec.whole_again_s_max is not None else spec.atomicity_s_max


def _limit_ns(history: History, spec: GangSpec, partial: Partial) -> int:
    return round(_limit_s(spec, lost=partial.lost) / history.run.time_scale * NS_PER_S)


def _stood_still(history: History, spec: GangSpec, partial: Partial) -> bool:
    """Whether it would have been short enough without the time in which the whole machine stood still."""
    still = sum(max(0, min(b, partial.end_ns) - max(a, partial.start_ns)) for a, b in stalls(history))
    return partial.length_ns - still <= _limit_ns(history, spec, partial)


def _broken_sentence(broken: Sequence[tuple[Gang, Partial]], spec: GangSpec, scale: float) -> str:
    parts = [
        f"{g.group.name} held {p.bound} of the {g.need} members it needs for {both(p.length_ns, scale)}"
        f"{' after a loss' if p.lost else ''} (limit {_limit_s(spec, lost=p.lost):.0f} s; "
        f"{scenario_s(p.gpu_ns, scale):.1f} GPU-seconds in vain)"
        for g, p in broken
    ]
    stuck = deadlocked(broken)
    names = listed([g.group.name for g in stuck])
    lock = f"; deadlock: {names} each held a part at the same time and waited for what another held" if stuck else ""
    return f"{count(len(parts), 'time')} longer than allowed: {'; '.join(parts)}{lock}"


def deadlocked(broken: Sequence[tuple[Gang, Partial]]) -> list[Gang]:
    """Gangs that were held up by each other: each had a part of what it needs at the same moment."""
    begun = [(g, p) for g, p in broken if not p.lost]
    found = {
        gang.group.name: gang
        for gang, p in begun
        for other, q in begun
        if gang.group != other.group and p.start_ns < q.end_ns and q.start_ns < p.end_ns
    }
    return list(found.values())


def _apart_row(apart: Apart | Mixed) -> Evidence:
    return Evidence(f"objects:{apart.event.index}", apart.event.t_ns, str(apart), {"gang": apart.group.name})


def _evidence(gangs: Sequence[Gang], broken: Sequence[tuple[Gang, Partial]], scale: float) -> tuple[Evidence, ...]:
    rows = [
        Evidence(
            f"objects:{p.event.index}",
            p.start_ns,
            f"{g.group.name}: {p.bound} of {g.need} bound for {both(p.length_ns, scale)}",
            {
                "gang": g.group.name,
                "bound": p.bound,
                "min_count": g.need,
                "partial_s": scenario_s(p.length_ns, scale),
            },
        )
        for g, p in broken
    ]
    for g in gangs:
        if not g.exercised:
            continue
        met = "met a shortage" if g.short else "met no shortage"
        text = f"{g.group.name}: {count(len(g.members), 'pod')}, needs {g.need}, {met}, lost {g.lost}"
        rows.append(Evidence(f"objects:{g.group.first.index}", g.group.born_ns, text, {"gang": g.group.name}))
    return tuple(rows)
