"""The load's records: one JSON line per thing that happened, written before anything else is done about it.

A request is registered when it is sent, so that a process that dies leaves ``sent`` without ``end`` and nothing is lost
from the account.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.history.tables import Outcome
from harness.run.load.arrival import Arrival
from harness.run.load.exchange import Exchange
from harness.run.load.outcome import Facts, judge_outcome

HELD_BY_SESSION = "session"
CUT_MIN = 6
"""Of a secret, fewer characters tell nothing."""


class Records:
    """``records.jsonl``. Unbuffered: what was written survives the process. Several processes may write one file:
    each line is one append, and appends to a local file do not mix."""

    def __init__(self, path: Path, secret: str | None = None) -> None:
        """``secret`` never reaches the file, whoever quotes it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._secret = json.dumps(secret)[1:-1].encode() if secret else None
        self._cut = _beginnings(self._secret) if self._secret else None

    def ready(self, t_ns: int) -> None:
        self._write({"e": "ready", "t_ns": t_ns})

    def sent(self, request_id: int, t_ns: int) -> None:
        self._write({"e": "sent", "id": request_id, "t_ns": t_ns})

    def end(self, row: Mapping[str, Any]) -> None:
        self._write({"e": "end", "id": row["request_id"], **row})

    def attempt(self, row: Mapping[str, Any]) -> None:
        """One that failed and is followed by another."""
        self._write({"e": "attempt", "id": row["request_id"], **row})

    def health(self, t_ns: int, cpu_ratio: float, loop_gap_ms_max: float, in_flight: int) -> None:
        record = {"e": "health", "t_ns": t_ns, "cpu_ratio": round(cpu_ratio, 4)}
        self._write(record | {"loop_gap_ms_max": round(loop_gap_ms_max, 3), "in_flight": in_flight})

    def finished(self, t_ns: int) -> None:
        self._write({"e": "finished", "t_ns": t_ns})

    def close(self) -> None:
        """For a process that outlives the load; nothing may be recorded after it."""
        os.close(self._fd)

    def _write(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(record, separators=(",", ":")).encode()
        if self._secret is not None:
            line = line.replace(self._secret, b"[API key]")
            line = self._cut.sub(b'[API key]"', line) if self._cut is not None else line
        os.write(self._fd, line + b"\n")


def _beginnings(secret: bytes) -> re.Pattern[bytes] | None:
    """A text that was cut within the secret: at its end stands what can only be the secret's beginning."""
    starts = [re.escape(secret[:n]) for n in range(len(secret) - 1, CUT_MIN - 1, -1)]
    return re.compile(b"(?:" + b"|".join(starts) + b')"') if starts else None


def held_row(arrival: Arrival, intended_ns: int, now_ns: int) -> dict[str, Any]:
    """A turn that was not sent because the one before it had not ended: the system's doing, not the generator's."""
    nothing = Exchange(arrival.request_id, Facts(arrival.output_tokens), sent_ns=now_ns)
    nothing.end_ns = now_ns
    row = end_row(nothing, arrival, intended_ns)
    return row | {"sent_ns": None, "outcome": Outcome.NOT_SENT.value, "reason": HELD_BY_SESSION}


def end_row(exchange: Exchange, arrival: Arrival, intended_ns: int) -> dict[str, Any]:
    """A finished exchange as a row of ``REQUEST_COLUMNS``; the phase is not the load's to know."""
    facts = exchange.facts
    outcome, reason = judge_outcome(facts)
    return {
        "request_id": exchange.request_id,
        "attempt": exchange.attempt,
        "intended_ns": intended_ns,
        "sent_ns": exchange.sent_ns,
        "connected_ns": exchange.connected_ns,
        "headers_ns": exchange.headers_ns,
        "first_chunk_ns": exchange.first_chunk_ns,
        "first_token_ns": exchange.first_token_ns,
        "last_token_ns": exchange.last_token_ns,
        "end_ns": exchange.end_ns,
        "chunks": facts.chunks,
        "gap_max_ns": exchange.gap_max_ns,
        "planned_prompt_tokens": arrival.prompt_tokens,
        "planned_output_tokens": facts.max_tokens,
        "prompt_tokens": facts.prompt_tokens,
        "output_tokens": facts.output_tokens,
        "finish_reason": facts.finish_reason,
        "done": facts.done,
        "status": facts.status,
        "pod": exchange.pod,
        "node": exchange.node,
        "reused": exchange.reused,
        "tenant": arrival.tenant,
        "session": arrival.session,
        "turn": arrival.turn,
        "prefix": arrival.prefix,
        "priority": arrival.priority,
        "stream": arrival.stream,
        "hang_up_tokens": arrival.hang_up_tokens,
        "hang_up_ns": arrival.hang_up_ns,
        "outcome": outcome.value,
        "reason": reason,
    }
