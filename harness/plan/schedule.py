"""The schedule: one row per arrival, fixed by profile and seed, written before the run so that runs can be compared."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray

from harness.clock import NS_PER_S
from harness.errors import BadInput, Where

SCHEDULE_FILE = "schedule.parquet"
COLUMNS = ("t_ns", "prompt_tokens", "output_tokens", "tenant", "session")
MORE_COLUMNS = ("turn", "priority", "stream", "hang_up_tokens", "hang_up_ns", "prefix")
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_SHA_KEY = b"gpu_harness_sha256"
_STEPS_KEY = b"gpu_harness_load_steps_ns"

Stats = dict[str, int | float | dict[str, int]]


@dataclass(frozen=True, slots=True, eq=False)
class More:
    """What only some schedules say of their requests; a schedule in which all is as usual has none of it."""

    turn: NDArray[np.int64]
    """From 1 within a session; 0 where there is none."""
    priority: NDArray[np.int64]
    """Sent where it is not 0; lower goes first."""
    stream: NDArray[np.int64]
    """1 where the answer is asked for as a stream."""
    hang_up_tokens: NDArray[np.int64]
    """After how many tokens the client hangs up; 0 for never."""
    hang_up_ns: NDArray[np.int64]
    """How long after the send the client hangs up; 0 for never."""
    prefix: NDArray[np.str_]
    """The prompt's beginning as ``harness.plan.prefixes`` writes it; empty where it shares none."""

    @classmethod
    def usual(cls, count: int) -> More:
        zeros = np.zeros(count, dtype=np.int64)
        return cls(zeros, zeros, np.ones(count, dtype=np.int64), zeros, zeros, np.full(count, ""))

    def or_none(self) -> More | None:
        usual = More.usual(len(self.turn))
        same = all(bool((getattr(self, name) == getattr(usual, name)).all()) for name in MORE_COLUMNS)
        return None if same else self


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Columns of equal length, sorted by time: a row's number is its request id. ``t_ns`` is clock time from the load's
    start; ``steps_ns`` are the times at which the load was planned to rise, the first of them 0."""

    t_ns: NDArray[np.int64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    tenant: NDArray[np.str_]
    session: NDArray[np.str_]
    """Empty where a request belongs to no session."""
    steps_ns: tuple[int, ...] = (0,)
    more: More | None = None

    def __len__(self) -> int:
        return len(self.t_ns)

    @property
    def rows(self) -> int:
        return len(self.t_ns)

    def load_steps_ns(self) -> tuple[int, ...]:
        return self.steps_ns

    def canonical_bytes(self) -> bytes:
        """What "same seed, same bytes" is said of: the columns one after another, numbers as little-endian int64.

        What is as usual is left out, so that a schedule keeps its bytes when a later version can say more.
        """
        parts = [f"gpu-harness schedule 1\n{len(self)}\n{json.dumps(self.steps_ns)}\n".encode()]
        parts += [column.astype("<i8").tobytes() for column in (self.t_ns, self.prompt_tokens, self.output_tokens)]
        parts += ["\n".join(column.tolist()).encode() + b"\n" for column in (self.tenant, self.session)]
        if self.more is not None:
            for name in MORE_COLUMNS:
                column = getattr(self.more, name)
                text = name == "prefix"
                data = "\n".join(column.tolist()).encode() + b"\n" if text else column.astype("<i8").tobytes()
                parts.append(f"{name}\n".encode() + data)
        return b"".join(parts)

    def sha256(self) -> str:
        return hashlib.sha256(self.canonical_bytes()).hexdigest()

    def write(self, path: Path) -> None:
        columns = {name: pa.array(getattr(self, name)) for name in COLUMNS}
        if self.more is not None:
            columns |= {name: pa.array(getattr(self.more, name)) for name in MORE_COLUMNS}
        table = pa.table(columns).replace_schema_metadata(
            {_SHA_KEY: self.sha256().encode(), _STEPS_KEY: json.dumps(self.steps_ns).encode()}
        )
        pq.write_table(table, path)

    def save(self, path: Path) -> None:
        """Writes it where a person asked for it. BadInput."""
        where = Where(str(path))
        if path.suffix != ".parquet":
            raise BadInput("--schedule writes Parquet only", where=where, hint="end the name in .parquet")
        try:
            self.write(path)
        except OSError as error:
            raise BadInput(f"--schedule cannot be written: {error.strerror or error}", where=where) from None

    @classmethod
    def read(cls, path: Path) -> Schedule:
        """A schedule whose rows no longer match its checksum is refused."""
        try:
            table = pq.read_table(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise BadInput(f"is no readable schedule: {error}", where=Where(str(path))) from None
        if missing := [name for name in COLUMNS if name not in table.column_names]:
            raise BadInput(f"has no column {', '.join(missing)}", where=Where(str(path)))
        numbers = [table[name].to_numpy().astype(np.int64) for name in COLUMNS[:3]]
        texts = [np.array(table[name].to_pylist(), dtype=np.str_) for name in COLUMNS[3:]]
        metadata = table.schema.metadata or {}
        try:
            steps_ns = tuple(int(t) for t in json.loads(metadata.get(_STEPS_KEY, b"")))
        except (ValueError, TypeError):
            raise BadInput("says nothing of its load steps", where=Where(str(path)), hint="plan or run again") from None
        schedule = cls(numbers[0], numbers[1], numbers[2], texts[0], texts[1], steps_ns, _more(table))
        if metadata.get(_SHA_KEY, b"").decode() != schedule.sha256():
            raise BadInput("was changed after it was written", where=Where(str(path)), hint="plan or run again")
        return schedule

    def stats(self, clock_s: float) -> Stats:
        """Figures for people, rounded. ``clock_s`` is how long the load lasts: until its last row or longer."""
        mean = len(self) / clock_s if clock_s else 0.0  # of one row there is no rate
        peak = peak_per_s(self.t_ns)
        return {
            "rows": len(self),
            "duration_s": round(clock_s, 6),
            "mean_per_s": round(mean, 3),
            "peak_per_s": peak,
            "peak_to_mean": round(peak / mean, 3) if mean else 0.0,
            "gap_cv": gap_cv(self.t_ns),
            "prompt_tokens": token_quantiles(self.prompt_tokens),
            "output_tokens": token_quantiles(self.output_tokens),
        }

    def counts(self, every_s: int, clock_s: float) -> list[int]:
        """Arrivals in each ``every_s`` clock seconds from the load's start to its end."""
        stretches = max(1, math.ceil(clock_s / every_s))
        which = np.minimum(self.t_ns // (every_s * NS_PER_S), stretches - 1)
        return [int(count) for count in np.bincount(which, minlength=stretches)]


def _more(table: Any) -> More | None:
    if not set(MORE_COLUMNS) <= set(table.column_names):
        return None
    columns: dict[str, Any] = {name: table[name].to_numpy().astype(np.int64) for name in MORE_COLUMNS[:-1]}
    return More(**columns, prefix=np.array(table["prefix"].to_pylist(), dtype=np.str_))


def peak_per_s(t_ns: NDArray[np.int64]) -> int:
    """The most arrivals in any window of one clock second, wherever it begins."""
    if not len(t_ns):
        return 0
    return int((np.arange(1, len(t_ns) + 1) - np.searchsorted(t_ns, t_ns - NS_PER_S, side="right")).max())


def rises_ns(t_ns: NDArray[np.int64], clock_s: float) -> tuple[int, ...]:
    """When the load rises, seen from its rows alone (for a trace, say): each clock second with at least twice the mean
    and four requests more than it, after a second below the mean. The load's start is the first."""
    mean = len(t_ns) / clock_s
    counts = np.bincount(t_ns // NS_PER_S, minlength=1).tolist() if len(t_ns) else []
    rises, calm = [0], True
    for second, count in enumerate(counts):
        if calm and second and count >= 2 * mean and count >= mean + 4:
            rises.append(second * NS_PER_S)
            calm = False
        calm = calm or count < mean
    return tuple(rises)


def gap_cv(t_ns: NDArray[np.int64]) -> float:
    """Coefficient of variation of the gaps between arrivals; 0 where there are fewer than two gaps."""
    if len(t_ns) < 3:
        return 0.0
    gaps = [int(gap) for gap in np.diff(t_ns)]
    # Whole numbers until the last step: the order of a floating-point sum may differ between machines.
    count, total, squares = len(gaps), sum(gaps), sum(gap * gap for gap in gaps)
    if total == 0:
        return 0.0
    return round(float(np.sqrt((count * squares - total * total) / (total * total))), 3)


def token_quantiles(tokens: NDArray[np.int64]) -> dict[str, int]:
    """Whole tokens of the sorted row at each quantile (nearest rank), and the sum."""
    if not len(tokens):
        return {"sum": 0}
    ordered = np.sort(tokens)
    ranks = {name: max(0, int(np.ceil(q * len(ordered))) - 1) for name, q in _QUANTILES.items()}
    return (
        {"min": int(ordered[0])}
        | {name: int(ordered[rank]) for name, rank in ranks.items()}
        | {
            "max": int(ordered[-1]),
            "sum": int(tokens.sum()),
        }
    )
