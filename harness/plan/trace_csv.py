"""Traces as CSV, known by their header: Azure's LLM inference traces (2023 and 2024) and BurstGPT (6 and 8 columns)."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

from harness.clock import NS_PER_S
from harness.errors import BadInput, Where
from harness.plan.trace_row import TraceRow, bad_row

AZURE_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
BURST_COLUMNS = ("Timestamp", "Request tokens", "Response tokens")
BURST_SESSION = "Session ID"
_STAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?\s*(?:Z|([+-])(\d\d):?(\d\d))?", re.ASCII
)
_COUNT = re.compile(r"\d{1,9}(\.0)?", re.ASCII)
_SECONDS = re.compile(r"(\d{1,12})(?:\.(\d{1,9})\d*)?", re.ASCII)


def read_csv(file: Path, known: str) -> Iterator[TraceRow]:
    """Rows with the times that the file gives. ``known`` says what may be given instead of a file of another kind."""
    with file.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        header = next(_guarded(file, reader, known), None)
        if not header:
            raise BadInput("is empty", where=Where(str(file), 1), hint=known)
        names = [name.strip() for name in header]
        read_row = _row_reader(file, names, known)
        for fields in _guarded(file, reader, known):
            if fields:
                yield read_row(reader.line_num, fields)


def time_column(names: list[str]) -> str:
    return AZURE_COLUMNS[0] if AZURE_COLUMNS[0] in names else BURST_COLUMNS[0]


def _row_reader(file: Path, names: list[str], known: str) -> Callable[[int, list[str]], TraceRow]:
    if all(names.count(column) == 1 for column in AZURE_COLUMNS) and "NumImages" not in names:
        columns = tuple(names.index(column) for column in AZURE_COLUMNS)
        return lambda line, fields: _azure_row(file, line, fields, columns)
    if all(names.count(column) == 1 for column in BURST_COLUMNS) and names.count(BURST_SESSION) <= 1:
        session = names.index(BURST_SESSION) if BURST_SESSION in names else None
        columns = tuple(names.index(column) for column in BURST_COLUMNS)
        return lambda line, fields: _burst_row(file, line, fields, columns, session)
    raise BadInput(f"is {_text_kind(names)}, not a trace this version reads", where=Where(str(file), 1), hint=known)


def _text_kind(names: list[str]) -> str:
    line = ",".join(names)
    if "NumImages" in names:
        return "an Azure trace with images, which a text model cannot replay"
    for kind, columns in (("an Azure trace", AZURE_COLUMNS), ("a BurstGPT trace", BURST_COLUMNS)):
        if set(names) & set(columns):
            missing = ", ".join(column for column in columns if column not in names)
            return f"{kind} without {missing}" if missing else f"{kind} with a column twice"
    shown = line if len(line) <= 80 else line[:77] + "..."
    return f'a file that begins with "{shown}"'


def _guarded(file: Path, reader: Iterator[list[str]], known: str) -> Iterator[list[str]]:
    """The reader's rows; what it cannot read becomes an error with a line."""
    line = 0
    while True:
        try:
            fields = next(reader, None)
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadInput(f"cannot be read as CSV: {error}", where=Where(str(file), line + 1), hint=known) from None
        if fields is None:
            return
        line = int(getattr(reader, "line_num", line + 1))
        yield fields


def _fields(file: Path, line: int, fields: list[str], columns: tuple[int, ...], names: tuple[str, ...]) -> list[str]:
    if len(fields) <= max(columns):
        shown = ",".join(fields)
        raise bad_row(
            file, line, None, f'has {len(fields)} fields: "{shown[:80]}"',
            f"a row has {','.join(names)}; was the file cut off?",
        )  # fmt: skip
    return [fields[column].strip() for column in columns]


def _azure_row(file: Path, line: int, fields: list[str], columns: tuple[int, ...]) -> TraceRow:
    stamp, prompt, output = _fields(file, line, fields, columns, AZURE_COLUMNS)
    t_ns = parse_stamp_ns(stamp)
    if t_ns is None:
        hint = "as in 2023-11-16 18:17:03.9799600, with up to nine decimals and an optional +00:00"
        raise bad_row(file, line, AZURE_COLUMNS[0], f'"{stamp}" is not a time', hint)
    return TraceRow(
        line, t_ns, _tokens(file, line, AZURE_COLUMNS[1], prompt, 1), _tokens(file, line, AZURE_COLUMNS[2], output, 1)
    )


def _burst_row(file: Path, line: int, fields: list[str], columns: tuple[int, ...], session: int | None) -> TraceRow:
    stamp, prompt, output = _fields(file, line, fields, columns, BURST_COLUMNS)
    match = _SECONDS.fullmatch(stamp)
    if match is None:
        raise bad_row(file, line, BURST_COLUMNS[0], f'"{stamp}" is not a time', "seconds, as in 5 or 19440110.25")
    t_ns = int(match[1]) * NS_PER_S + int((match[2] or "0").ljust(9, "0"))
    named = fields[session].strip() if session is not None and session < len(fields) else ""
    return TraceRow(
        line,
        t_ns,
        _tokens(file, line, BURST_COLUMNS[1], prompt, 1),
        _tokens(file, line, BURST_COLUMNS[2], output, 0),
        session=named,
    )


def _tokens(file: Path, line: int, column: str, text: str, least: int) -> int:
    if not _COUNT.fullmatch(text) or int(text.removesuffix(".0")) < least:
        raise bad_row(file, line, column, f'"{text}" is not a number of tokens', f"a whole number, at least {least}")
    return int(text.removesuffix(".0"))


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
