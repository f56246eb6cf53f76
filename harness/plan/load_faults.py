"""Faults of the load, put into the schedule: part of the plan, and so the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.clock import NS_PER_S
from harness.errors import BadInput
from harness.faults.catalogue.load import LoadChange, LoadFault
from harness.faults.fault import Fault
from harness.plan.chance import Chance
from harness.plan.schedule import More, Schedule
from harness.plan.trace_row import ROWS_MAX, too_many

T = TypeVar("T", np.int64, np.str_)


def with_load_faults(schedule: Schedule, faults: Iterable[tuple[str, Fault]], time_scale: float, seed: int) -> Schedule:
    """``faults``: those of the experiment, by fault id. Each draws from a stream of its own, so that one more changes
    nothing of the others; those of the load itself, and only they, change the schedule."""
    base = schedule
    for fault_id, fault in faults:
        if not isinstance(fault, LoadFault):
            continue
        change = fault.change(fault_id)
        begin_ns, end_ns = (round(s / time_scale * NS_PER_S) for s in (fault.starts_s, fault.ends_s))
        chance = Chance(seed, f"load.{fault_id}")
        before = schedule
        if change.hang_up_ratio:
            schedule = _hung_up(schedule, change, begin_ns, end_ns, chance)
        if change.added_per_s:
            schedule = _joined(schedule, _added(base, change, begin_ns, end_ns, chance), begin_ns)
        if len(schedule) == len(before) and _leaving(schedule) == _leaving(before):
            raise BadInput(
                f"{fault_id} changes nothing of the load: with seed {seed} no request comes, or leaves, because of it",
                hint="raise added_per_s or ratio, or hold_s; only streams can be hung up on",
            )
    return schedule


def _leaving(schedule: Schedule) -> int:
    return 0 if schedule.more is None else int(np.count_nonzero(schedule.more.hang_up_tokens))


def _added(base: Schedule, change: LoadChange, begin_ns: int, end_ns: int, chance: Chance) -> Schedule:
    """Poisson arrivals. Prompts and answers are as long together as those of some request that comes anyway."""
    times: list[int] = []
    rows: list[int] = []
    t_s = begin_ns / NS_PER_S
    while (t_ns := round((t_s := t_s + chance.exponential() / change.added_per_s) * NS_PER_S)) < end_ns:
        times.append(t_ns)
        rows.append(int(chance.uniform() * len(base)))
        if len(times) + len(base) > ROWS_MAX:
            raise too_many(f"the load with {change.user}", ROWS_MAX)
    like = np.array(rows, dtype=np.int64)
    prompt = base.prompt_tokens[like]
    if change.prompt_tokens is not None:
        prompt = np.full(len(times), change.prompt_tokens, dtype=np.int64)
    usual = More.usual(len(times))
    priority = np.full(len(times), change.priority, dtype=np.int64)
    more = More(usual.turn, priority, usual.stream, usual.hang_up_tokens, usual.hang_up_ns, usual.prefix)
    user, session = np.full(len(times), change.user), np.full(len(times), "")
    return Schedule(np.array(times, dtype=np.int64), prompt, base.output_tokens[like], user, session, (), more)


def _joined(schedule: Schedule, added: Schedule, begin_ns: int) -> Schedule:
    order = np.argsort(np.concatenate([schedule.t_ns, added.t_ns]), kind="stable")

    def together(before: NDArray[T], after: NDArray[T]) -> NDArray[T]:
        both: NDArray[T] = np.concatenate([before, after])[order]
        return both

    a, b = (part.more or More.usual(len(part)) for part in (schedule, added))
    more = More(
        together(a.turn, b.turn),
        together(a.priority, b.priority),
        together(a.stream, b.stream),
        together(a.hang_up_tokens, b.hang_up_tokens),
        together(a.hang_up_ns, b.hang_up_ns),
        together(a.prefix, b.prefix),
    )
    return Schedule(
        together(schedule.t_ns, added.t_ns),
        together(schedule.prompt_tokens, added.prompt_tokens),
        together(schedule.output_tokens, added.output_tokens),
        together(schedule.tenant, added.tenant),
        together(schedule.session, added.session),
        tuple(sorted({*schedule.steps_ns, begin_ns})),
        more.or_none(),
    )


def _hung_up(schedule: Schedule, change: LoadChange, begin_ns: int, end_ns: int, chance: Chance) -> Schedule:
    """Of the streams that begin meanwhile; a client that was to leave anyway leaves as it was to."""
    more = schedule.more or More.usual(len(schedule))
    tokens = more.hang_up_tokens.copy()
    for row in np.flatnonzero((schedule.t_ns >= begin_ns) & (schedule.t_ns < end_ns)).tolist():
        leaves = chance.uniform() < change.hang_up_ratio
        if leaves and more.stream[row] and not (tokens[row] or more.hang_up_ns[row]):
            tokens[row] = change.hang_up_tokens
    more = More(more.turn, more.priority, more.stream, tokens, more.hang_up_ns, more.prefix)
    return replace(schedule, more=more.or_none())
