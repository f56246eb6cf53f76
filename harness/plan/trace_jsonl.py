"""Mooncake traces: one JSON object a line, with ``timestamp`` in ms and one of ``hash_ids`` for each 512 tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.plan.trace_row import TraceRow, bad_row

COLUMNS = ("timestamp", "input_length", "output_length")
_LIKE = 'as in {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}'
_NS_PER_MS = 1_000_000


def read_jsonl(file: Path, known: str) -> Iterator[TraceRow]:
    with file.open("rb") as lines:
        for number, text in enumerate(lines, start=1):
            if text.strip():
                yield _row(file, number, text, known)


def _row(file: Path, line: int, text: bytes, known: str) -> TraceRow:
    try:
        raw: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise bad_row(file, line, None, f"is not JSON: {error}", f"{_LIKE}; was the file cut off?") from None
    if not isinstance(raw, dict) or (line == 1 and not set(COLUMNS) & raw.keys()):
        raise bad_row(file, line, None, "is no row of a trace this version reads", known)
    stamp = raw.get("timestamp")
    if isinstance(stamp, bool) or not isinstance(stamp, int | float) or not 0 <= stamp < 1e15:
        raise bad_row(file, line, "timestamp", f"{_shown(stamp)} is not a time", f"milliseconds, {_LIKE}")
    blocks = raw.get("hash_ids", [])
    if not isinstance(blocks, list) or not all(type(block) is int for block in blocks):
        raise bad_row(file, line, "hash_ids", f"{_shown(blocks)} is not a list of whole numbers", _LIKE)
    return TraceRow(
        line,
        round(stamp * _NS_PER_MS),
        _tokens(file, line, raw, "input_length"),
        _tokens(file, line, raw, "output_length"),
        tuple(blocks),
    )


def _tokens(file: Path, line: int, raw: dict[str, Any], key: str) -> int:
    value = raw.get(key)
    if type(value) is not int or not 1 <= value < 1_000_000_000:
        raise bad_row(file, line, key, f"{_shown(value)} is not a number of tokens", f"a whole number, {_LIKE}")
    return value


def _shown(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
