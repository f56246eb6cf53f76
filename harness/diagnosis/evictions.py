"""Budgets that were overdrawn, past or through the Eviction API; and budgets that cannot keep their promise."""

from __future__ import annotations

from collections.abc import Iterator

from harness.checks.budgets import misfits
from harness.checks.pdb import PLAIN_DELETE, Disruption, HealthyCount, covered, disruptions, held_back
from harness.checks.undisturbed import disturbed
from harness.checks.units import NS_PER_MS, count, listed
from harness.diagnosis.case import SHOWN, Case
from harness.diagnosis.suspect import BUDGETS, DRAIN, EVICTION_API, PROVISIONER, WORKLOAD, Sure, Suspect
from harness.history.lives import Life, node_of
from harness.verdict import Evidence

_BREAKS = frozenset({"pdb", "graceful_drain", "slo", "baseline"})
_SETTLED_NS = 500 * NS_PER_MS


def evictions(case: Case) -> Iterator[Suspect]:
    budgets = case.of("PodDisruptionBudget")
    every = [(b, d) for b in budgets for d in disruptions(case.history, b)]
    bad = sorted(((b, d) for b, d in every if d.overdraws), key=lambda pair: pair[1].event.t_ns)
    past = [(b, d) for b, d in bad if d.how == PLAIN_DELETE]
    if past:
        budget, first = past[0]
        nodes = sorted({node_of(d.pod.last) for _, d in past})
        act = (
            f"deleted {count(len(past), 'pod')} of {listed(nodes)} past the Eviction API, leaving"
            f" {min(d.healthy_after for _, d in past)} "
        )
        act += f"healthy where {budget.name} asks for {first.desired}"
        yield Suspect(
            DRAIN,
            act,
            first.event.t_ns,
            _BREAKS,
            seen=_rows(past),
            scope=f"hit: {listed([d.pod.name for _, d in past])}",
            change="drain through the Eviction API, and try again on 429",
        )
    admitted = [(b, d) for b, d in bad if d.how != PLAIN_DELETE]
    if admitted:
        yield _admitted(case, admitted, every)
    yield from _misfit(case)
    if torn := disturbed(case.history):
        act = (
            f"drained {count(len(torn), 'pod')} that ask to be left alone (karpenter.sh/do-not-disrupt) from"
            f" {listed(sorted({d.node for d in torn}))}"
        )
        rows = tuple(
            Evidence(f"objects:{d.event.index}", d.event.t_ns, f"{d.pod.name} on {d.node} was asked to go")
            for d in torn[:SHOWN]
        )
        yield Suspect(
            PROVISIONER,
            act,
            torn[0].event.t_ns,
            _BREAKS,
            seen=rows,
            change="see why its consolidation takes nodes whose pods forbid it",
        )


def _admitted(case: Case, bad: list[tuple[Life, Disruption]], every: list[tuple[Life, Disruption]]) -> Suspect:
    """Was the budget's status wrong, or was a right status not asked? It is compared with the pods themselves."""
    budget, first = bad[0]
    counted = _counts_too_many(case, budget, bad)
    left = f"leaving {min(d.healthy_after for _, d in bad)} healthy where {budget.name} asks for {first.desired}"
    if counted:
        t_ns, said, were, _ = counted[0]
        act = (
            f"counted pods as healthy that were not Ready: the status of {budget.name} said {said} healthy when"
            f" {were} were, so "
        )
        act += f"{count(len(bad), 'eviction')} too many passed, {left}"
        rows = tuple(
            Evidence(f"objects:{i}", t, f"{budget.name}: currentHealthy {a}, {b} pods Ready")
            for t, a, b, i in counted[:SHOWN]
        )
        return Suspect(
            BUDGETS,
            act,
            t_ns,
            _BREAKS,
            seen=(*rows, *_rows(bad)),
            scope=f"hit: {listed([d.pod.name for _, d in bad])}",
        )
    own = sorted(
        (d for b, d in every if b is budget and d.voluntary and d.how != PLAIN_DELETE), key=lambda d: d.event.t_ns
    )
    near = [d for d in own if abs(d.event.t_ns - first.event.t_ns) <= _SETTLED_NS]
    allowed = max((d.allowed_before or 0 for d in near), default=0)
    n = count(len(near), "pod")
    act = (
        f"admitted {count(len(bad), 'eviction')} beyond the budget {budget.name}: {allowed} allowed, {n} evicted at"
        f" once, {left}"
    )
    if len(near) <= allowed:
        act = f"admitted {count(len(bad), 'eviction')} beyond the budget {budget.name}, {left}"
    return Suspect(
        EVICTION_API,
        act,
        first.event.t_ns,
        _BREAKS,
        seen=_rows([(budget, d) for d in own]),
        scope=f"hit: {listed([d.pod.name for _, d in bad])}",
        otherwise=(
            "the budget's status was right each time it was written, so it was not asked, or asked too late: the"
            " audit log of these evictions would tell"
        ),
    )


def _counts_too_many(case: Case, budget: Life, bad: list[tuple[Life, Disruption]]) -> list[tuple[int, int, int, int]]:
    """Versions of the status that say more healthy pods than there were, and lasted so."""
    healthy = HealthyCount(covered(case.history, budget))
    pods = {p.seen[-1].index: p for p in covered(case.history, budget)}
    indices = sorted(e.index for p in pods.values() for e in (*p.seen, *([p.gone] if p.gone else [])))
    until = bad[-1][1].event.t_ns
    found = []
    for event in budget.seen:
        said = (event.object.get("status") or {}).get("currentHealthy")
        if said is None or event.t_ns > until:
            continue
        around = [healthy.at(i) for i in indices if _near(case, i, event.t_ns)] or [healthy.at(event.index)]
        if int(said) > max(*around, healthy.at(event.index)):
            found.append((event.t_ns, int(said), healthy.at(event.index), event.index))
    return found


def _near(case: Case, index: int, t_ns: int) -> bool:
    return abs(case.history.objects[index].t_ns - t_ns) <= _SETTLED_NS // 2


def _rows(bad: list[tuple[Life, Disruption]]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            f"objects:{d.event.index}",
            d.event.t_ns,
            f"{d.pod.name} on {node_of(d.pod.last)} was {d.how}:"
            f" {'no status' if d.allowed_before is None else f'{d.allowed_before} allowed'} before it,"
            f" {d.healthy_after} healthy after it, {d.desired} wanted",
        )
        for _, d in bad[:SHOWN]
    )


def _misfit(case: Case) -> Iterator[Suspect]:
    held = [row for budget in case.of("PodDisruptionBudget") for row in held_back(case.history, budget)]
    for m in misfits(case.history, [pod for pod, _ in held], covered)[:1]:
        row = Evidence(f"objects:{m.event.index}", m.event.t_ns, m.what)
        yield Suspect(WORKLOAD, m.what, m.event.t_ns, _BREAKS, Sure.SETTING, seen=(row,), change=m.change)
