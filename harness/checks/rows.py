"""The requests table as typed rows, and what the checks ask of a row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.checks.units import NS_PER_MS, ms
from harness.history.recording import once
from harness.history.tables import CUT, Outcome

if TYPE_CHECKING:
    from harness.history.reader import History

T = TypeVar("T")
Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]
Places = NDArray[np.int64]


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


_COLUMNS = tuple(f.name for f in fields(Request))
_ASKED = ("tenant", "priority", "planned_prompt_tokens", "hang_up_tokens", "hang_up_ns")
"""Columns that are asked for whole, and of which no row tells."""
_AT_ONCE = 10_000


class Rows(Sequence[Request]):
    """A requests table, in its own order: asked by whole columns, and for the rows that are to be told of.

    Half a million ``Request`` at once take seconds and half a gigabyte, so none is kept. Masks and columns are as long
    as the table. A column that is missing is a defect of the history and raises ``KeyError``.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = table[[*_COLUMNS, *_ASKED]]
        self._kept: dict[object, Any] = {}

    def __len__(self) -> int:
        return len(self._table)

    @overload
    def __getitem__(self, at: int) -> Request: ...
    @overload
    def __getitem__(self, at: slice) -> list[Request]: ...
    def __getitem__(self, at: int | slice) -> Request | list[Request]:
        if isinstance(at, slice):
            return _made(self._table.iloc[at])
        return _made(self._table.iloc[[at]])[0]

    def __iter__(self) -> Iterator[Request]:
        for start in range(0, len(self), _AT_ONCE):
            yield from _made(self._table.iloc[start : start + _AT_ONCE])

    def where(self, which: Mask | Places | Sequence[int]) -> list[Request]:
        """The rows of a mask, or those at some places, in that order."""
        places = np.asarray(which)
        if places.dtype == bool:
            places = np.flatnonzero(places)
        return _made(self._table.iloc[places.astype(np.int64)])

    def numbers(self, name: str) -> Numbers:
        """NaN where a cell is null. Nanoseconds are exact up to a hundred days."""
        return self._once(name, lambda: self._table[name].to_numpy(dtype=np.float64, na_value=np.nan))

    def texts(self, name: str) -> list[str | None]:
        """Equal texts are one object."""
        codes, known = self._coded(name)
        words = [*known, None]
        return [words[code] for code in codes.tolist()]

    def among(self, name: str, texts: Collection[str]) -> Mask:
        """Where a text is one of these."""
        codes, known = self._coded(name)
        return np.isin(codes, [code for code, text in enumerate(known) if text in texts])

    def missing(self, name: str) -> Mask:
        """Where a text is null."""
        return self._coded(name)[0] < 0

    def each(self, name: str, values: Mapping[Any, float]) -> Numbers:
        """For each row the value of its text; NaN where that has none."""
        codes, known = self._coded(name)
        return np.array([*(values.get(text, np.nan) for text in known), np.nan])[codes]

    def places(self, name: str) -> dict[str, Places]:
        """Of each text, where it stands in the table, in the table's order."""
        return self._once(("places", name), lambda: self._places(name))

    @property
    def sent(self) -> Mask:
        return ~np.isnan(self.numbers("sent_ns"))

    @property
    def ok(self) -> Mask:
        return self._once("is ok", lambda: self.among("outcome", {Outcome.OK}))

    @property
    def cut(self) -> Mask:
        return self._once("is cut", lambda: self.among("outcome", CUT))

    @property
    def hung_up_by_plan(self) -> Mask:
        return self.among("outcome", {Outcome.ABORTED_BY_CLIENT})

    @property
    def on_a_pod(self) -> Mask:
        return self.among("pod", {pod for pod in self.places("pod") if pod})

    @property
    def streamed(self) -> Mask:
        return self._once("streamed", lambda: self.numbers("stream") != 0)

    def without_a_token(self) -> tuple[Numbers, Numbers]:
        """When those that were sent were, and until when they had no token: the first one, or their end."""
        sent, token, end = self.numbers("sent_ns"), self.numbers("first_token_ns"), self.numbers("end_ns")
        until = np.where(np.isnan(token) | (token == 0), end, token)
        known = ~np.isnan(sent) & ~np.isnan(until)
        return sent[known], until[known]

    def latency(self, metric: str) -> Numbers:
        """``ttft_ms`` and the like, as the rows' own properties say them; NaN where there is none."""
        return self._once(metric, lambda: _LATENCIES[metric](self))

    def _coded(self, name: str) -> tuple[Places, list[str]]:
        def coded() -> tuple[Places, list[str]]:
            codes, known = pd.factorize(self._table[name])
            return codes, [str(text) for text in known]

        return self._once(("coded", name), coded)

    def _places(self, name: str) -> dict[str, Places]:
        codes, known = self._coded(name)
        order = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[order], np.arange(len(known) + 1))
        return {text: order[edges[at] : edges[at + 1]] for at, text in enumerate(known)}

    def _once(self, key: object, work: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = work()
        answer: T = self._kept[key]
        return answer


def _ms_between(rows: Rows, start: str, end: str) -> Numbers:
    return (rows.numbers(end) - rows.numbers(start)) / NS_PER_MS


def _e2e_ms(rows: Rows) -> Numbers:
    last = np.where(rows.streamed, rows.numbers("last_token_ns"), rows.numbers("end_ns"))
    return (last - rows.numbers("intended_ns")) / NS_PER_MS


def _tpot_ms(rows: Rows) -> Numbers:
    tokens = rows.numbers("output_tokens")
    more = np.where(tokens >= 2, tokens - 1, np.nan)
    return _ms_between(rows, "first_token_ns", "last_token_ns") / more


_LATENCIES: dict[str, Callable[[Rows], Numbers]] = {
    "ttft_ms": lambda rows: _ms_between(rows, "intended_ns", "first_token_ns"),
    "ttft_sent_ms": lambda rows: _ms_between(rows, "sent_ns", "first_token_ns"),
    "tpot_ms": _tpot_ms,
    "itl_ms": lambda rows: rows.numbers("gap_max_ns") / NS_PER_MS,
    "e2e_ms": _e2e_ms,
}


def _made(table: pd.DataFrame) -> list[Request]:
    columns = [_cells(table[name]) for name in _COLUMNS]
    return [Request(*cells) for cells in zip(*columns, strict=True)]


@once
def rows_of(history: History) -> Rows:
    """The rows of a history's own table."""
    return Rows(history.requests)


def _cells(column: pd.Series[Any]) -> list[Any]:
    return [None if missing else value for value, missing in zip(column.tolist(), column.isna().tolist(), strict=True)]


def ratio(part: int, whole: int) -> float | None:
    """None rather than 0 where there was nothing to count."""
    return None if whole == 0 else part / whole


def nearest_rank(values: Sequence[float] | Numbers, q: float) -> float | None:
    """The smallest value that at least ``q`` of all do not exceed; failed ones are handed in as infinity."""
    if len(values) == 0:
        return None
    rank = max(1, -int(-(q * len(values)) // 1))
    place = min(rank, len(values)) - 1
    if isinstance(values, np.ndarray):
        return float(np.partition(values, place)[place])
    return sorted(values)[place]
