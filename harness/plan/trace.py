"""Reads rows of a recorded trace, so that real arrivals and real lengths can be replayed.

Azure's LLM inference traces (2023 and 2024) are read, known by their header. Rows are streamed: of a file of a week
only the rows up to the end of the cut are looked at.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import IO

from harness.clock import NS_PER_S
from harness.errors import BadInput, Where

AZURE_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_NEXT = "use an Azure LLM inference trace: CSV with the header " + ",".join(AZURE_COLUMNS)
_STAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?\s*(?:Z|([+-])(\d\d):?(\d\d))?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class TraceCut:
    """Which part of a trace is replayed, in trace seconds from its first row, and how many times faster.

    ``duration_s=None`` means up to the last row.
    """

    file: Path
    start_s: float = 0.0
    duration_s: float | None = None
    speed: float = 1.0

    def __post_init__(self) -> None:
        for flag, value, least in (
            ("--trace-start", self.start_s, "at least 0"),
            ("--trace-duration", self.duration_s, "more than 0"),
            ("--speed", self.speed, "more than 0"),
        ):
            if value is None:
                continue
            if not (value >= 0 if flag == "--trace-start" else value > 0) or value == float("inf"):
                raise BadInput(
                    f"{flag} is {value:g}, but must be {least}", hint="seconds of the trace, as a plain number"
                )


@dataclass(frozen=True, slots=True)
class TraceRow:
    """``t_ns`` counts from the first row of the file."""

    line: int
    t_ns: int
    prompt_tokens: int
    output_tokens: int


def read_rows(file: Path) -> Iterator[TraceRow]:
    """All rows, in the order of the file, which must be the order of time."""
    with _open(file) as stream:
        reader = csv.reader(stream, strict=True)
        columns = _columns(file, reader)
        first_ns: int | None = None
        last_ns = 0
        for fields in _guarded(file, reader):
            if not fields:
                continue
            row = _row(file, reader.line_num, fields, columns)
            first_ns = row.t_ns if first_ns is None else first_ns
            if row.t_ns < last_ns:
                raise _bad(file, row.line, "TIMESTAMP", "is earlier than the row before it", "sort the file by time")
            last_ns = row.t_ns
            yield TraceRow(row.line, row.t_ns - first_ns, row.prompt_tokens, row.output_tokens)


def cut_rows(cut: TraceCut) -> tuple[list[TraceRow], float]:
    """The rows of the cut and its length in trace seconds. An empty cut, or one past the file's end, is refused."""
    start_ns = round(cut.start_s * NS_PER_S)
    end_ns = None if cut.duration_s is None else start_ns + round(cut.duration_s * NS_PER_S)
    rows: list[TraceRow] = []
    last_ns: int | None = None
    reached_end = True
    for row in read_rows(cut.file):
        if end_ns is not None and row.t_ns >= end_ns:
            reached_end = False
            break
        last_ns = row.t_ns
        if row.t_ns >= start_ns:
            rows.append(row)
    where = Where(str(cut.file))
    if last_ns is None:
        raise BadInput("holds a header, but no rows", where=where, hint=_NEXT)
    holds = f"the trace holds seconds 0 to {last_ns / NS_PER_S:.1f}"
    if reached_end and end_ns is not None and end_ns > last_ns + NS_PER_S:
        raise BadInput(
            f"the cut from {cut.start_s:g} s to {end_ns / NS_PER_S:g} s goes past the end", where=where,
            hint=f"{holds}; all of them are trace seconds, before --speed",
        )  # fmt: skip
    if not rows:
        raise BadInput(f"no row lies in the cut that starts at {cut.start_s:g} s", where=where, hint=holds)
    seconds = cut.duration_s if cut.duration_s is not None else (last_ns - start_ns + 1) / NS_PER_S
    return rows, seconds


# --- recognising -----------------------------------------------------------------------------------------------------


def _open(file: Path) -> IO[str]:
    where = Where(str(file))
    try:
        with file.open("rb") as stream:
            head = stream.read(512)
    except OSError as error:
        raise BadInput(f"the trace cannot be read: {error.strerror}", where=where, hint=_NEXT) from None
    if kind := _binary_kind(head):
        raise BadInput(f"is {kind}, not a trace this version reads", where=where, hint=_NEXT)
    return file.open(encoding="utf-8-sig", newline="")


def _binary_kind(head: bytes) -> str | None:
    for magic, kind in (
        (b"\x1f\x8b", "gzip data (unpack it first)"),
        (b"PAR1", "a Parquet file"),
        (b"PK", "a zip file"),
    ):
        if head.startswith(magic):
            return kind
    return "binary data" if b"\0" in head else None


def _columns(file: Path, reader: Iterator[list[str]]) -> tuple[int, int, int]:
    header = next(_guarded(file, reader), None)
    if not header:
        raise BadInput("is empty", where=Where(str(file), 1), hint=_NEXT)
    names = [name.strip() for name in header]
    if all(names.count(column) == 1 for column in AZURE_COLUMNS) and "NumImages" not in names:
        return (names.index("TIMESTAMP"), names.index("ContextTokens"), names.index("GeneratedTokens"))
    raise BadInput(f"is {_text_kind(names)}, not a trace this version reads", where=Where(str(file), 1), hint=_NEXT)


def _text_kind(names: list[str]) -> str:
    line = ",".join(names)
    if line.startswith("{"):
        return "JSON lines (a Mooncake trace)" if '"hash_ids"' in line or '"input_length"' in line else "JSON"
    if "Request tokens" in names and "Response tokens" in names:
        return "a BurstGPT trace"
    if "NumImages" in names:
        return "an Azure trace with images, which a text model cannot replay"
    if set(names) & set(AZURE_COLUMNS):
        missing = ", ".join(column for column in AZURE_COLUMNS if column not in names)
        return f"an Azure trace without {missing}" if missing else "an Azure trace with a column twice"
    shown = line if len(line) <= 80 else line[:77] + "..."
    return f'a file that begins with "{shown}"'


# --- one row ---------------------------------------------------------------------------------------------------------


def _guarded(file: Path, reader: Iterator[list[str]]) -> Iterator[list[str]]:
    """The reader's rows; what it cannot read becomes an error with a line."""
    line = 0
    while True:
        try:
            fields = next(reader, None)
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadInput(f"cannot be read as CSV: {error}", where=Where(str(file), line + 1), hint=_NEXT) from None
        if fields is None:
            return
        line = int(getattr(reader, "line_num", line + 1))
        yield fields


def _row(file: Path, line: int, fields: list[str], columns: tuple[int, int, int]) -> TraceRow:
    if len(fields) <= max(columns):
        shown = ",".join(fields)
        raise BadInput(
            f'has {len(fields)} fields: "{shown[:80]}"', where=Where(str(file), line),
            hint="a row has TIMESTAMP,ContextTokens,GeneratedTokens; was the file cut off?",
        )  # fmt: skip
    stamp, prompt, output = (fields[column].strip() for column in columns)
    t_ns = parse_stamp_ns(stamp)
    if t_ns is None:
        hint = "as in 2023-11-16 18:17:03.9799600, with up to nine decimals and an optional +00:00"
        raise _bad(file, line, "TIMESTAMP", f'"{stamp}" is not a time', hint)
    return TraceRow(
        line, t_ns, _tokens(file, line, AZURE_COLUMNS[1], prompt), _tokens(file, line, AZURE_COLUMNS[2], output)
    )


def _tokens(file: Path, line: int, column: str, text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or int(text) < 1:
        raise _bad(file, line, column, f'"{text}" is not a number of tokens', "a whole number, at least 1")
    return int(text)


def parse_stamp_ns(text: str) -> int | None:
    """Nanoseconds since year 1 in UTC. By hand, because ``%f`` reads six decimals and these files have seven."""
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
    try:
        days = date(year, month, day).toordinal()
    except ValueError:
        return None
    if hour > 23 or minute > 59 or second > 60:
        return None
    offset_s = 0 if match[8] is None else (int(match[9]) * 3600 + int(match[10]) * 60) * (-1 if match[8] == "-" else 1)
    fraction_ns = int((match[7] or "0").ljust(9, "0"))
    return (((days * 24 + hour) * 60 + minute) * 60 + second - offset_s) * NS_PER_S + fraction_ns


def _bad(file: Path, line: int, column: str, message: str, hint: str) -> BadInput:
    return BadInput(message, where=Where(str(file), line, column), hint=hint)
