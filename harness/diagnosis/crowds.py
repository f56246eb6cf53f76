"""A load that asks for more than the replicas can answer: they did their part, and there were too few of them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from harness.checks.units import count
from harness.diagnosis.case import SHOWN, Case, quote
from harness.diagnosis.lateness import late
from harness.diagnosis.scope import pods_hit
from harness.diagnosis.suspect import LOAD, Sure, Suspect
from harness.history.scaleup import LOAD_STEP

_BREAKS = frozenset({"slo", "baseline", "capacity"})
_ENOUGH = 8
_QUEUED = 0.5
"""Of the late requests so many met others on their replica: what made them late is a queue."""
_MORE = 1.1
"""So many times what came before must come, and so many times what was answered: less is its ups and downs."""
_BACK_S = 120.0
"""Scenario seconds: a step of the load as long before the first late request is where its queue began."""


def overrun(case: Case) -> Iterator[Suspect]:
    """Until most of them waited, more came than was answered, and more than before."""
    rows, slow = case.rows, late(case)
    queued = slow & ~case.quiet
    if int(queued.sum()) < max(_ENOUGH, _QUEUED * int(slow.sum())):
        return
    sent, end = rows.numbers("sent_ns"), rows.numbers("end_ns")
    first, last = int(np.nanmin(sent[queued])), int(np.nanmax(sent[queued]))
    steps = [m.t_ns for m in case.history.marks if m.name == LOAD_STEP]
    since = max((t for t in steps if first - case.ns(_BACK_S) <= t <= first), default=first)
    moments = np.sort(sent[(sent >= since) & (sent <= last)])
    waiting = np.searchsorted(np.sort(sent), moments, side="right") - np.searchsorted(np.sort(end), moments)
    peak = int(moments[int(waiting.argmax())])
    length = peak - since
    if length <= 0:
        return
    came = int(((sent >= since) & (sent <= peak)).sum())
    answers = rows.ok & (end >= since) & (end <= peak)
    answered = int(answers.sum())
    before = int(((sent >= since - length) & (sent < since)).sum())
    if came <= _MORE * max(answered, before):
        return
    pods = {row.pod for row in rows.where(answers) if row.pod}
    clock = case.clock(length)
    act = f"brought {count(came, 'request')} within {clock}, of which {count(len(pods), 'replica')} answered"
    act += f" {answered}; in the {clock} before it brought {before}"
    wanted = math.ceil(came / max(answered, 1) * len(pods))
    yield Suspect(
        LOAD,
        act,
        since,
        _BREAKS,
        Sure.SETTING,
        pods_hit(case, {row.pod for row in rows.where(queued) if row.pod}, list(rows.places("pod"))),
        tuple(quote(row, f"late by a queue on {row.pod}") for row in rows.where(queued)[:SHOWN]),
        change=f"about {wanted} replicas would have kept up: keep more of them, or let them come sooner",
    )
