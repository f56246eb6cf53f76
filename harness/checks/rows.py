"""The requests table as typed rows, and what the checks ask of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from harness.checks.units import ms
from harness.history.recording import once
from harness.history.tables import CUT, Outcome

if TYPE_CHECKING:
    import pandas as pd

    from harness.history.reader import History


@dataclass(frozen=True, slots=True)
class Request:
    """One row of ``requests.parquet``; null cells are None."""

    request_id: int
    attempt: int
    intended_ns: int
    sent_ns: int | None
    headers_ns: int | None
    first_token_ns: int | None
    last_token_ns: int | None
    end_ns: int | None
    gap_max_ns: int | None
    planned_output_tokens: int
    output_tokens: int | None
    stream: bool | None
    status: int | None
    pod: str | None
    node: str | None
    outcome: str
    reason: str | None
    phase: str
    chunks: int
    finish_reason: str | None

    @property
    def ref(self) -> str:
        return f"requests:{self.request_id}"

    @property
    def ok(self) -> bool:
        return self.outcome == Outcome.OK

    @property
    def streamed(self) -> bool:
        """Asked for as a stream; runs of old did not say so, and had nothing else."""
        return self.stream is not False

    @property
    def hung_up_by_plan(self) -> bool:
        return self.outcome == Outcome.ABORTED_BY_CLIENT

    @property
    def cut(self) -> bool:
        return self.outcome in CUT

    @property
    def ttft_ms(self) -> float | None:
        """From the intended time: waiting for a late generator or a full queue is the user's waiting too."""
        return None if self.first_token_ns is None else ms(self.first_token_ns - self.intended_ns)

    @property
    def ttft_sent_ms(self) -> float | None:
        if self.first_token_ns is None or self.sent_ns is None:
            return None
        return ms(self.first_token_ns - self.sent_ns)

    @property
    def e2e_ms(self) -> float | None:
        """To the last token; to the end of an answer that came in one piece."""
        last_ns = self.last_token_ns if self.streamed else self.end_ns
        return None if last_ns is None else ms(last_ns - self.intended_ns)

    @property
    def tpot_ms(self) -> float | None:
        """None for an answer of one token: there is no time between tokens to measure."""
        if self.first_token_ns is None or self.last_token_ns is None or (self.output_tokens or 0) < 2:
            return None
        return ms(self.last_token_ns - self.first_token_ns) / ((self.output_tokens or 0) - 1)

    @property
    def itl_ms(self) -> float | None:
        """The largest single gap between two chunks of the answer: a request is late when any of its gaps is."""
        return None if self.gap_max_ns is None else ms(self.gap_max_ns)

    def in_flight_at(self, t_ns: int) -> bool:
        return self.sent_ns is not None and self.sent_ns <= t_ns and (self.end_ns is None or t_ns < self.end_ns)


_COLUMNS = tuple(f.name for f in fields(Request))


def rows(requests: pd.DataFrame) -> tuple[Request, ...]:
    """In the order of the table. A column that is missing is a defect of the history and raises."""
    columns = [_cells(requests, name) for name in _COLUMNS]
    return tuple(Request(*cells) for cells in zip(*columns, strict=True))


@once
def rows_of(history: History) -> tuple[Request, ...]:
    """The rows of a history's own table."""
    return rows(history.requests)


def _cells(requests: pd.DataFrame, name: str) -> list[Any]:
    column = requests[name]
    return [None if missing else value for value, missing in zip(column.tolist(), column.isna().tolist(), strict=True)]


def ratio(part: int, whole: int) -> float | None:
    """None rather than 0 where there was nothing to count."""
    return None if whole == 0 else part / whole


def nearest_rank(values: Sequence[float], q: float) -> float | None:
    """The smallest value that at least ``q`` of all do not exceed; failed ones are handed in as infinity."""
    if not values:
        return None
    ordered = sorted(values)
    rank = max(1, -int(-(q * len(ordered)) // 1))
    return ordered[min(rank, len(ordered)) - 1]
