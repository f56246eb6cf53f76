"""One row of the schedule, as the load takes it."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_TENANT = "default"
"""What the plan calls the tenant of a request that has none."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A row of the schedule; ``t_ns`` counts from the load's start."""

    request_id: int
    t_ns: int
    prompt_tokens: int
    output_tokens: int
    tenant: str
    session: str
    turn: int = 0
    priority: int = 0
    stream: bool = True
    hang_up_tokens: int = 0
    hang_up_ns: int = 0
    prefix: str = ""
