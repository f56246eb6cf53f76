"""From the load's records to ``requests.parquet``: one row per scheduled arrival, each with exactly one outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from harness.history.phases import phase_of
from harness.history.tables import REQUEST_COLUMNS, Outcome, Phase

USUAL: dict[str, Any] = {
    "turn": 0, "prefix": "", "priority": 0, "stream": True, "hang_up_tokens": 0, "hang_up_ns": 0,
}  # fmt: skip
"""What a request is like where its schedule says nothing else."""
HEALTH_NAMES = ("cpu_ratio", "loop_gap_ms_max", "in_flight")


class Schedule(Protocol):
    """What is needed of ``harness.plan``'s schedule: equally long columns, times from the load's start."""

    @property
    def t_ns(self) -> Sequence[int] | Any: ...
    @property
    def prompt_tokens(self) -> Sequence[int] | Any: ...
    @property
    def output_tokens(self) -> Sequence[int] | Any: ...
    @property
    def tenant(self) -> Sequence[str] | Any: ...
    @property
    def session(self) -> Sequence[str] | Any: ...


@dataclass(slots=True)
class LoadRecords:
    """Everything that ``records.jsonl`` says, each request's first end only."""

    ready_ns: int | None = None
    finished_ns: int | None = None
    sent: dict[int, int] = field(default_factory=dict)
    ends: dict[int, dict[str, Any]] = field(default_factory=dict)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    """Those that were followed by another attempt of the same request."""
    duplicate_ends: int = 0
    health: list[dict[str, Any]] = field(default_factory=list)
    unreadable_lines: int = 0


def read_records(path: Path) -> LoadRecords:
    """Tolerates a cut tail: the load may have been killed while it wrote. A missing file is an empty one."""
    records = LoadRecords()
    if not path.exists():
        return records
    with path.open("rb") as lines:
        for line in lines:
            try:
                record = json.loads(line)
                _take(records, record)
            except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
                records.unreadable_lines += 1
    return records


def _take(records: LoadRecords, record: Mapping[str, Any]) -> None:
    kind = record["e"]
    if kind == "sent":
        records.sent.setdefault(int(record["id"]), int(record["t_ns"]))
    elif kind == "end":
        request_id = int(record["id"])
        if request_id in records.ends:
            records.duplicate_ends += 1
        else:
            records.ends[request_id] = {k: _writable(v) for k, v in record.items() if k in REQUEST_COLUMNS}
    elif kind == "attempt":
        records.attempts.append({k: _writable(v) for k, v in record.items() if k in REQUEST_COLUMNS})
    elif kind == "health":
        records.health.append(dict(record))
    elif kind == "ready":
        records.ready_ns = int(record["t_ns"])
    elif kind == "finished":
        records.finished_ns = max(records.finished_ns or 0, int(record["t_ns"]))
    else:
        raise ValueError(f"unknown record {kind!r}")


def _writable(value: Any) -> Any:
    """JSON may hold half of a surrogate pair, which a server put into its error's text; no file can."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def build_requests(
    schedule: Schedule,
    records: Path | LoadRecords,
    phases: Sequence[Phase],
    *,
    load_start_ns: int | None = None,
) -> pd.DataFrame:
    """One row per arrival: ended rows as recorded, sent ones without an end ``unfinished``, all others ``not_sent``.

    ``load_start_ns`` defaults to the first phase's start, which is the same moment.
    """
    known = read_records(records) if isinstance(records, Path) else records
    if load_start_ns is None:
        load_start_ns = phases[0].start_ns if phases else 0
    rows = [
        _row(i, load_start_ns + int(t_ns), int(prompt), int(output), str(tenant), str(session), known)
        for i, (t_ns, prompt, output, tenant, session) in enumerate(
            zip(
                schedule.t_ns,
                schedule.prompt_tokens,
                schedule.output_tokens,
                schedule.tenant,
                schedule.session,
                strict=True,
            )
        )
    ]
    for name, column in _more_columns(schedule).items():
        for row, value in zip(rows, column, strict=True):
            row[name] = bool(value) if name == "stream" else value
    for row in rows:
        row["phase"] = phase_of(phases, row["intended_ns"])
    return typed_requests(pd.DataFrame(rows, columns=list(REQUEST_COLUMNS), dtype=object))


def _more_columns(schedule: Schedule) -> dict[str, list[Any]]:
    """What only some schedules say of their requests: a table read back has the columns itself, ours has ``more``."""
    if isinstance(schedule, pd.DataFrame):
        return {name: schedule[name].tolist() for name in USUAL if name in schedule}
    more = getattr(schedule, "more", None)
    return {} if more is None else {name: getattr(more, name).tolist() for name in USUAL}


def typed_requests(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with exactly the columns and types of ``REQUEST_COLUMNS``."""
    return frame.reindex(columns=list(REQUEST_COLUMNS)).astype(REQUEST_COLUMNS)


def empty_requests() -> pd.DataFrame:
    return typed_requests(pd.DataFrame(columns=list(REQUEST_COLUMNS), dtype=object))


def _row(
    request_id: int, intended_ns: int, prompt: int, output: int, tenant: str, session: str, records: LoadRecords
) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(REQUEST_COLUMNS)
    row.update(attempt=1, chunks=0, done=False, reused=False, tenant=tenant, session=session)
    row.update(USUAL)
    row.update(planned_prompt_tokens=prompt, planned_output_tokens=output)
    end = records.ends.get(request_id)
    if end is not None:
        row.update({k: v for k, v in end.items() if v is not None})
    elif request_id in records.sent:
        row.update(sent_ns=records.sent[request_id], outcome=Outcome.UNFINISHED.value)
        row["reason"] = "sent, but the load process ended before the request did"
    else:
        row.update(outcome=Outcome.NOT_SENT.value, reason=_why_not_sent(records))
    # The plan, not the load, is the authority on what was planned and when.
    row.update(request_id=request_id, intended_ns=intended_ns)
    row["outcome"] = str(row["outcome"] or Outcome.PROTOCOL_ERROR)
    return row


def _why_not_sent(records: LoadRecords) -> str:
    if records.ready_ns is None:
        return "the load process never became ready"
    if records.finished_ns is None:
        return "the load process died before this arrival was sent"
    return "the load was stopped before this arrival was sent"
