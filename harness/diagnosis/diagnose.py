"""Which component broke its own promise first, which fails follow from that, and what the green checks say of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from harness.diagnosis.autoscaling import autoscaling
from harness.diagnosis.books import books, cut_after_a_time
from harness.diagnosis.bought import orders
from harness.diagnosis.case import Case
from harness.diagnosis.claims import claims
from harness.diagnosis.crowds import overrun
from harness.diagnosis.evictions import evictions
from harness.diagnosis.gangs import gangs
from harness.diagnosis.kubelets import devices, hooks, pods_that_stay
from harness.diagnosis.latency import sent_away, slow
from harness.diagnosis.leftovers import leftovers
from harness.diagnosis.lost_requests import lost_requests
from harness.diagnosis.newcomers import newcomers
from harness.diagnosis.queues import queues
from harness.diagnosis.readiness import readiness
from harness.diagnosis.refute import narrowed, refuted
from harness.diagnosis.replica_sets import replica_sets
from harness.diagnosis.routers import pickers, routers
from harness.diagnosis.suspect import Sure, Suspect
from harness.diagnosis.testify import testimony
from harness.verdict import Diagnosis, Finding

if TYPE_CHECKING:
    from harness.history.reader import History

RULES: dict[str, Callable[[Case], Iterator[Suspect]]] = {
    "lost_requests": lost_requests,
    "cut_after_a_time": cut_after_a_time,
    "readiness": readiness,
    "books": books,
    "sent_away": sent_away,
    "slow": slow,
    "overrun": overrun,
    "routers": routers,
    "pickers": pickers,
    "newcomers": newcomers,
    "replica_sets": replica_sets,
    "autoscaling": autoscaling,
    "hooks": hooks,
    "devices": devices,
    "pods_that_stay": pods_that_stay,
    "gangs": gangs,
    "queues": queues,
    "claims": claims,
    "evictions": evictions,
    "orders": orders,
    "leftovers": leftovers,
}
"""Each looks at what one kind of component owes the others, and says who did not keep it."""


def diagnose(history: History, findings: Sequence[Finding]) -> tuple[Diagnosis, ...]:
    """Nothing where no check failed, and nothing of a component by which no fail can be explained."""
    case = Case(history, findings)
    if not case.failed:
        return ()
    return tuple(_chained(case, ranked_suspects(case)))


def ranked_suspects(case: Case) -> list[Suspect]:
    """The surest first, of these the earliest; those that recorded facts contradict are left out."""
    suspects = narrowed(case, [s for rule in RULES.values() for s in rule(case)])
    suspects = [s for s in suspects if s.breaks & case.failed and refuted(case, s, suspects) is None]
    return sorted(suspects, key=lambda s: (s.sure, s.since_ns, s.component))


def _chained(case: Case, suspects: Sequence[Suspect]) -> Iterator[Diagnosis]:
    """Each fail goes to the first suspect that can break its promise. A suspect to whom none is left is what followed
    from the first that shares a fail with it and began before it."""
    left = set(case.failed)
    heads: list[tuple[Suspect, list[str], list[Suspect]]] = []
    for suspect in suspects:
        own = suspect.breaks & left
        earlier = [head for head in heads if head[0].breaks & suspect.breaks & case.failed]
        if own:
            heads.append((suspect, [f.check for f in case.findings if f.check in own], []))
            left -= own
        elif earlier:
            earlier[0][2].append(suspect)
    for suspect, explains, then in heads:
        yield _diagnosis(case, suspect, tuple(dict.fromkeys(explains)), then)


def _diagnosis(case: Case, suspect: Suspect, explains: tuple[str, ...], then: list[Suspect]) -> Diagnosis:
    steps = sorted((s for s in then), key=lambda s: s.since_ns)
    return Diagnosis(
        suspect.component,
        suspect.act,
        suspect.since_ns,
        f"from {case.at(suspect.since_ns)} of the load",
        suspect.scope,
        suspect.sure is Sure.INFERRED,
        suspect.otherwise,
        suspect.change,
        explains,
        tuple(f"{case.at(s.since_ns)}: {s.component} {s.act}" for s in steps),
        testimony(case, suspect),
        suspect.seen,
    )
