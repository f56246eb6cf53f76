"""Writes a run's history so that a crash at any moment leaves a readable prefix.

Line files are appended with one write per line, because several processes append to the same ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pandas as pd
import zstandard

from harness.history.jsonl import append_fault, append_mark, line_bytes
from harness.history.requests import HEALTH_NAMES, LoadRecords, Schedule, build_requests, read_records
from harness.history.tables import (
    ATTEMPTS_FILE,
    FAULTS_FILE,
    MARKS_FILE,
    OBJECTS_FILE,
    REQUEST_COLUMNS,
    REQUESTS_FILE,
    SAMPLE_COLUMNS,
    SAMPLES_FILE,
    FaultEvent,
    ObjectEventType,
    Phase,
)

SAMPLES_JOURNAL = "samples.jsonl"
"""Exists only while samples are being recorded, or after a crash."""


class ObjectsWriter:
    """``objects.jsonl.zst``: one zstd frame that is closed only by ``close``, so that a missing end is seen."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._frame = zstandard.ZstdCompressor(level=3, write_checksum=True).compressobj()
        self._next_index = 0
        self._dirty = True  # the frame header itself is flushed once
        self.flush()

    def write(
        self,
        t_ns: int,
        kind: str,
        type: ObjectEventType,
        obj: Mapping[str, Any] | None = None,
        *,
        since_ns: int | None = None,
        reason: str | None = None,
    ) -> int:
        """Returns the event's index. It is on disk after the next ``flush``."""
        record: dict[str, Any] = {"t_ns": t_ns, "kind": kind, "type": type.value, "object": obj or {}}
        if since_ns is not None:
            record["since_ns"] = since_ns
        if reason is not None:
            record["reason"] = reason
        self._file.write(self._frame.compress(line_bytes(record)))
        self._dirty = True
        index = self._next_index
        self._next_index += 1
        return index

    @property
    def written(self) -> int:
        """How many events so far."""
        return self._next_index

    def flush(self) -> None:
        if self._dirty and not self._file.closed:
            self._file.write(self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
            self._file.flush()
            self._dirty = False

    def close(self) -> None:
        if not self._file.closed:
            self._file.write(self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH))
            self._file.close()


class SamplesWriter:
    """Buffers samples for the parquet file written at ``close``; a journal beside it survives a crash."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._journal_path = path.with_name(SAMPLES_JOURNAL)
        self._journal = self._journal_path.open("wb")
        self._rows: list[tuple[int, str, str, str, float]] = []

    def add(self, t_ns: int, source: str, name: str, value: float, labels: Mapping[str, str] | None = None) -> None:
        row = (t_ns, source, name, canonical_labels(labels), float(value))
        self._rows.append(row)
        self._journal.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")

    def flush(self) -> None:
        if not self._journal.closed:
            self._journal.flush()

    def close(self) -> None:
        if self._journal.closed:
            return
        self._journal.close()
        frame = pd.DataFrame(self._rows, columns=list(SAMPLE_COLUMNS)).astype(SAMPLE_COLUMNS)
        part = self._path.with_name(self._path.name + ".part")
        frame.to_parquet(part, index=False, write_page_checksum=True)
        part.replace(self._path)
        self._journal_path.unlink()


def canonical_labels(labels: Mapping[str, str] | None) -> str:
    """Equal label sets are equal texts."""
    return json.dumps(dict(labels or {}), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class HistoryWriter:
    """The one writer of a run's ``history/`` folder in the supervisor's process."""

    def __init__(self, history_dir: Path) -> None:
        history_dir.mkdir(parents=True, exist_ok=True)
        self.dir = history_dir
        self.objects = ObjectsWriter(history_dir / OBJECTS_FILE)
        self.samples = SamplesWriter(history_dir / SAMPLES_FILE)
        for name in (MARKS_FILE, FAULTS_FILE):
            (history_dir / name).touch()

    def mark(self, t_ns: int, name: str, value: str = "", detail: str = "") -> None:
        append_mark(self.dir, t_ns, name, value, detail)

    def fault(self, event: FaultEvent) -> None:
        append_fault(self.dir, event)

    def flush(self) -> None:
        """Puts everything before it out of reach of a crash of this process."""
        self.objects.flush()
        self.samples.flush()

    def write_load(
        self, schedule: Schedule, records_path: Path, phases: Sequence[Phase], *, load_start_ns: int | None = None
    ) -> LoadRecords:
        """``requests.parquet``, and the load's own health as samples. Call it before ``close``."""
        records = read_records(records_path)
        requests = build_requests(schedule, records, phases, load_start_ns=load_start_ns)
        requests.to_parquet(self.dir / REQUESTS_FILE, index=False, write_page_checksum=True)
        if records.attempts:
            attempts = pd.DataFrame(records.attempts).reindex(columns=list(REQUEST_COLUMNS)).astype(REQUEST_COLUMNS)
            attempts.to_parquet(self.dir / ATTEMPTS_FILE, index=False, write_page_checksum=True)
        for health in records.health:
            for name in HEALTH_NAMES:
                if isinstance(value := health.get(name), (int, float)):
                    self.samples.add(int(health["t_ns"]), "load", name, value)
        end_ns = records.finished_ns or max(records.sent.values(), default=load_start_ns or 0)
        if records.duplicate_ends:
            self.mark(end_ns, "duplicate_ends", str(records.duplicate_ends), "requests that ended more than once")
        if records.unreadable_lines:
            self.mark(end_ns, "unreadable_records", str(records.unreadable_lines), str(records_path.name))
        return records

    def close(self) -> None:
        self.objects.close()
        self.samples.close()

    def __enter__(self) -> HistoryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
