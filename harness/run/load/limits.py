"""How patient a client is, and which of its limits comes next."""

from __future__ import annotations

from dataclasses import dataclass

from harness.clock import NS_PER_S
from harness.run.load.exchange import Exchange
from harness.run.load.outcome import Ending


@dataclass(frozen=True, slots=True)
class SendLimits:
    """Clock seconds. All but the connect timeout count from the send or from the last event."""

    connect_timeout_s: float = 5.0
    first_token_timeout_s: float = 60.0
    stall_timeout_s: float = 10.0
    deadline_s: float = 120.0


def next_limit(exchange: Exchange, limits: SendLimits) -> tuple[int, Ending, float]:
    """The next limit to be reached if nothing comes: when, what it means, and its length."""
    deadline_ns = exchange.sent_ns + round(limits.deadline_s * NS_PER_S)
    if (hang_up_ns := exchange.hang_up_at_ns) is not None and hang_up_ns < deadline_ns:
        deadline_ns, at_last, last_s = hang_up_ns, Ending.HUNG_UP, exchange.hang_up_ns / NS_PER_S
    else:
        at_last, last_s = Ending.DEADLINE, limits.deadline_s
    if not exchange.facts.stream:
        return deadline_ns, at_last, last_s  # an answer in one piece is silent until it is whole
    if exchange.first_token_ns is None:
        ending, limit_s, since_ns = Ending.NO_TOKEN, limits.first_token_timeout_s, exchange.sent_ns
    else:
        ending, limit_s = Ending.STALLED, limits.stall_timeout_s
        since_ns = exchange.last_event_ns or exchange.first_token_ns
    until_ns = since_ns + round(limit_s * NS_PER_S)
    if until_ns < deadline_ns:
        return until_ns, ending, limit_s
    return deadline_ns, at_last, last_s
