"""Our own Parquet: a ``schedule.parquet``, or any file with its columns, read in pieces and never whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types

from harness.errors import BadInput, Where
from harness.plan.trace_row import TraceRow, bad_row

COLUMNS = ("t_ns", "prompt_tokens", "output_tokens")
_TEXTS = ("prefix", "session", "tenant")
_BATCH_ROWS = 4096


def read_parquet(file: Path, known: str) -> Iterator[TraceRow]:
    """A row's ``line`` is its number in the file, from 1."""
    try:
        with pq.ParquetFile(file) as parquet:
            names = parquet.schema_arrow.names
            if missing := [name for name in COLUMNS if name not in names]:
                message = f"is a Parquet file without {', '.join(missing)}, not a trace this version reads"
                raise BadInput(message, where=Where(str(file)), hint=known)
            texts = [name for name in _TEXTS if name in names]
            first = 1
            for batch in parquet.iter_batches(_BATCH_ROWS, columns=[*COLUMNS, *texts], use_threads=False):
                yield from _rows(file, first, batch, texts)
                first += batch.num_rows
    except (OSError, pa.ArrowException) as error:
        raise BadInput(f"cannot be read as Parquet: {error}", where=Where(str(file)), hint=known) from None


def _rows(file: Path, first: int, batch: Any, names: list[str]) -> Iterator[TraceRow]:
    numbers = [batch.column(name).to_pylist() for name in COLUMNS]
    nothing = [""] * batch.num_rows
    texts = [batch.column(name).to_pylist() if name in names else nothing for name in _TEXTS]
    for line, row in enumerate(zip(*numbers, *texts, strict=True), start=first):
        t_ns, prompt, output, prefix, session, tenant = row
        for name, value, least in zip(COLUMNS, row, (0, 1, 1), strict=False):
            if type(value) is not int or value < least:
                raise bad_row(file, line, name, f"row {line} has {value!r}", f"a whole number, at least {least}")
        yield TraceRow(line, t_ns, prompt, output, prefix=prefix or "", session=session or "", tenant=tenant or "")
