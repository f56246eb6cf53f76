"""What a schedule's requests are like, in numbers for the plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from harness.plan.mix import DEFAULT_TENANT
from harness.plan.prefixes import shared_tokens
from harness.plan.schedule import More, Schedule


@dataclass(frozen=True, slots=True)
class MixStats:
    """``shared_prompt_ratio`` is the share of all prompt tokens that an endless prefix cache would not compute
    again."""

    tenants: dict[str, int]
    sessions: int
    turns_mean: float
    """Of the turns that are planned: past the load's end there are none, nor past the longest context."""
    turns_min: int
    turns_max: int
    with_prefix: int
    top_prefix_ratio: float
    """The share of all requests that begin with the most wanted beginning; a session's own text is none."""
    shared_prompt_ratio: float
    not_streamed: int
    hang_ups: int
    priorities: dict[str, int]
    """Of tenants that have one, and only one; 0 is not sent."""


def mix_stats(schedule: Schedule) -> MixStats | None:
    """None for a schedule of single streams of one tenant, of which there is nothing to say."""
    tenants = Counter(schedule.tenant.tolist())
    if schedule.more is None and set(tenants) <= {DEFAULT_TENANT}:
        return None
    more = More.usual(len(schedule)) if schedule.more is None else schedule.more
    prefixes = more.prefix.tolist()
    sessions = schedule.session.tolist()
    turns = Counter(name for name in sessions if name)
    return MixStats(
        tenants=dict(sorted(tenants.items())),
        sessions=len(turns),
        turns_mean=round(turns.total() / max(1, len(turns)), 3),
        turns_min=min(turns.values(), default=0),
        turns_max=int(more.turn.max(initial=0)),
        with_prefix=sum(1 for prefix in prefixes if prefix),
        top_prefix_ratio=_top_ratio(prefixes, sessions),
        shared_prompt_ratio=round(shared_tokens(prefixes) / max(1, int(schedule.prompt_tokens.sum())), 6),
        not_streamed=int((more.stream == 0).sum()),
        hang_ups=int(((more.hang_up_tokens > 0) | (more.hang_up_ns > 0)).sum()),
        priorities=_priorities(schedule, more),
    )


def _top_ratio(prefixes: list[str], sessions: list[str]) -> float:
    firsts = (prefix.split("+", 1)[0].rpartition(":")[0] for prefix in prefixes)
    counts = Counter(first for first, session in zip(firsts, sessions, strict=True) if first and first != session)
    return round(max(counts.values(), default=0) / max(1, len(prefixes)), 6)


def _priorities(schedule: Schedule, more: More) -> dict[str, int]:
    found: dict[str, set[int]] = {}
    for tenant, priority in sorted(set(zip(schedule.tenant.tolist(), more.priority.tolist(), strict=True))):
        found.setdefault(tenant, set()).add(priority)
    return {tenant: one for tenant, (one, *others) in found.items() if one and not others}
