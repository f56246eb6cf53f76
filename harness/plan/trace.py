"""Reads rows of a recorded trace, so that real arrivals and real lengths can be replayed.

A file is known by how it begins. Rows are streamed: of a file of a week only the rows up to the end of the cut are
looked at, and only those of the cut are kept, as bare numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.clock import NS_PER_S
from harness.errors import BadInput, Where
from harness.plan.chance import Chance
from harness.plan.prefixes import BlockNames
from harness.plan.trace_csv import AZURE_COLUMNS, BURST_COLUMNS, parse_stamp_ns, read_csv, time_column
from harness.plan.trace_jsonl import read_jsonl
from harness.plan.trace_parquet import read_parquet
from harness.plan.trace_row import ROWS_MAX, TraceRow, bad_row, too_many

__all__ = ["CutError", "TraceCut", "TraceRow", "TraceRows", "parse_stamp_ns", "read_cut", "read_rows"]

_KNOWN = (
    f"known are Azure LLM traces (CSV: {','.join(AZURE_COLUMNS)}), BurstGPT (CSV: {','.join(BURST_COLUMNS)}), Mooncake "
    "(JSON lines: timestamp, input_length, output_length, hash_ids) and our own schedule.parquet"
)

FLAG_MAX = 1e9
"""Thirty years in seconds: beyond it no trace was recorded, and times in nanoseconds do not fit any more."""


@dataclass(frozen=True, slots=True)
class TraceCut:
    """Which part of a trace is replayed, in trace seconds from its first row, how many times faster, and at which
    multiple of its rate. ``duration_s=None`` means up to the last row; ``loop`` repeats the cut to the load's end."""

    file: Path
    start_s: float = 0.0
    duration_s: float | None = None
    speed: float = 1.0
    scale: float = 1.0
    loop: bool = False

    def __post_init__(self) -> None:
        for flag, value, least in (
            ("--trace-start", self.start_s, "at least 0"),
            ("--trace-duration", self.duration_s, "more than 0"),
            ("--speed", self.speed, "more than 0"),
            ("--scale", self.scale, "more than 0"),
        ):
            if value is None:
                continue
            if not (value >= 0 if flag == "--trace-start" else value > 0) or value > FLAG_MAX:
                raise BadInput(
                    f"{flag} is {value:g}, but must be {least} and at most {FLAG_MAX:g}",
                    hint="seconds of the trace, or a multiple, as a plain number",
                )


class CutError(BadInput):
    """A cut that is not in its trace. ``key`` is what of the cut is wrong, as a profile calls it."""

    def __init__(self, cut: TraceCut, key: str, message: str, hint: str) -> None:
        super().__init__(message, where=Where(str(cut.file)), hint=hint)
        self.cut = cut
        self.key = key


@dataclass(slots=True)
class TraceRows:
    """The rows of a cut as columns. ``t_ns`` is trace time from the cut's start; the texts are empty lists where no row
    has one."""

    seconds: float = 0.0
    """How long the cut is, in trace seconds."""
    failed_rows: int = 0
    """Rows without an answer, which were left out."""
    t_ns: array[int] = field(default_factory=lambda: array("q"))
    prompt_tokens: array[int] = field(default_factory=lambda: array("q"))
    output_tokens: array[int] = field(default_factory=lambda: array("q"))
    prefix: list[str] = field(default_factory=list)
    session: list[str] = field(default_factory=list)
    tenant: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.t_ns)

    def take(self, row: TraceRow, t_ns: int, prefix: str, copy: int) -> None:
        session = f"{row.session}.{copy}" if row.session and copy else row.session
        for name, text in (("prefix", prefix), ("session", session), ("tenant", row.tenant)):
            column: list[str] = getattr(self, name)
            if text or column:
                column += [""] * (len(self) - len(column))
                column.append(text)
        self.t_ns.append(t_ns)
        self.prompt_tokens.append(row.prompt_tokens)
        self.output_tokens.append(row.output_tokens)


def read_rows(file: Path) -> Iterator[TraceRow]:
    """All rows, in the order of the file, which must be the order of time."""
    rows, column = _recognise(file)
    first_ns: int | None = None
    last_ns = 0
    for row in rows:
        first_ns = row.t_ns if first_ns is None else first_ns
        if first_ns is not None and row.t_ns < max(first_ns, last_ns):
            raise bad_row(file, row.line, column, "is earlier than the row before it", "sort the file by time")
        last_ns = row.t_ns
        yield TraceRow(
            row.line, row.t_ns - first_ns, row.prompt_tokens, row.output_tokens, row.blocks, row.prefix, row.session,
            row.tenant,
        )  # fmt: skip


def read_cut(cut: TraceCut, chance: Chance) -> TraceRows:
    """The cut's rows at its scale. An empty cut, or one past the file's end, is refused.

    With a scale below 1 each row stays with that probability. Above 1 a row is followed by copies of itself, placed
    evenly by chance before the next row, so that quiet and busy times keep their shares; a copy belongs to a session of
    its own. Both need chance, so a scale of 1 draws nothing.
    """
    start_ns = round(cut.start_s * NS_PER_S)
    end_ns = None if cut.duration_s is None else start_ns + round(cut.duration_s * NS_PER_S)
    kept, names = TraceRows(), BlockNames()
    held: TraceRow | None = None
    last_ns: int | None = None
    reached_end = True
    for row in read_rows(cut.file):
        if end_ns is not None and row.t_ns >= end_ns:
            reached_end = False
            break
        last_ns = row.t_ns
        if row.t_ns < start_ns:
            continue
        if row.output_tokens == 0:
            kept.failed_rows += 1
            continue
        if len(kept) > ROWS_MAX:
            raise too_many("the trace's cut", ROWS_MAX)
        if held is not None:
            _place(kept, held, row.t_ns, start_ns, cut.scale, chance, names)
        held = row
    if held is not None:
        stop_ns = end_ns if end_ns is not None else held.t_ns + 1
        _place(kept, held, stop_ns, start_ns, cut.scale, chance, names)
    _check_cut(cut, held, last_ns, end_ns if reached_end else None)
    assert last_ns is not None
    kept.seconds = cut.duration_s if cut.duration_s is not None else (last_ns - start_ns + 1) / NS_PER_S
    if cut.scale > 1:
        _in_order(kept)
    return kept


def _place(
    kept: TraceRows, row: TraceRow, next_ns: int, start_ns: int, scale: float, chance: Chance, names: BlockNames
) -> None:
    prefix = row.prefix or names.prefix(row.blocks, row.prompt_tokens)
    if scale == 1:
        kept.take(row, row.t_ns - start_ns, prefix, 0)
        return
    copies = int(scale) + (chance.uniform() < scale - int(scale))
    if len(kept) + copies > ROWS_MAX:
        raise too_many("the trace's cut", ROWS_MAX)
    for copy in range(copies):
        shift_ns = int((next_ns - row.t_ns) * chance.uniform()) if copy else 0
        kept.take(row, row.t_ns - start_ns + shift_ns, prefix, copy)


def _in_order(kept: TraceRows) -> None:
    order = sorted(range(len(kept)), key=kept.t_ns.__getitem__)
    for name in ("t_ns", "prompt_tokens", "output_tokens"):
        column: array[int] = getattr(kept, name)
        setattr(kept, name, array("q", (column[i] for i in order)))
    for name in ("prefix", "session", "tenant"):
        texts: list[str] = getattr(kept, name)
        if texts:
            texts += [""] * (len(kept) - len(texts))
            setattr(kept, name, [texts[i] for i in order])


def _check_cut(cut: TraceCut, held: TraceRow | None, last_ns: int | None, end_ns: int | None) -> None:
    """``end_ns`` is None where the file went on behind the cut, or where the cut had no end."""
    where = Where(str(cut.file))
    if last_ns is None:
        raise BadInput("holds a header, but no rows", where=where, hint=_KNOWN)
    holds = (
        f"the trace holds seconds 0 to {last_ns / NS_PER_S:.1f}; a cut is in seconds of the trace, whatever the speed"
    )
    if end_ns is not None and end_ns > last_ns + NS_PER_S:
        key = "start_s" if round(cut.start_s * NS_PER_S) > last_ns else "duration_s"
        raise CutError(cut, key, f"the cut from {cut.start_s:g} s to {end_ns / NS_PER_S:g} s goes past the end", holds)
    if held is None:
        raise CutError(cut, "start_s", f"no row lies in the cut that starts at {cut.start_s:g} s", holds)


# --- recognising -----------------------------------------------------------------------------------------------------


def _recognise(file: Path) -> tuple[Iterator[TraceRow], str]:
    """The rows as they stand in the file, and the name of the column with their time."""
    where = Where(str(file))
    try:
        with file.open("rb") as stream:
            head = stream.read(512)
    except OSError as error:
        raise BadInput(f"the trace cannot be read: {error.strerror}", where=where, hint=_KNOWN) from None
    if head.startswith(b"PAR1"):
        return read_parquet(file, _KNOWN), "t_ns"
    if kind := _binary_kind(head):
        raise BadInput(f"is {kind}, not a trace this version reads", where=where, hint=_KNOWN)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return read_jsonl(file, _KNOWN), "timestamp"
    names = head.decode("utf-8-sig", "replace").split("\n", 1)[0].split(",")
    return read_csv(file, _KNOWN), time_column([name.strip() for name in names])


def _binary_kind(head: bytes) -> str | None:
    for magic, kind in ((b"\x1f\x8b", "gzip data (unpack it first)"), (b"PK", "a zip file")):
        if head.startswith(magic):
            return kind
    return "binary data" if b"\0" in head else None
