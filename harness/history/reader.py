"""Reads a run's history back. What is cut or missing becomes a gap with its reason, never an exception or silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from sys import intern
from typing import Any, TypeVar

import pandas as pd

from harness.collector import collector_resting
from harness.errors import BadInput, Where
from harness.history.objects_file import ObjectsFile, loads
from harness.history.recording import Recording
from harness.history.requests import build_requests, empty_requests, read_records, typed_requests
from harness.history.run_info import RunInfo
from harness.history.seal import SEAL_FILE, broken_seals
from harness.history.tables import (
    FAULTS_FILE,
    LEDGER_FILE,
    MARKS_FILE,
    OBJECTS_FILE,
    RECORDED_KINDS,
    REQUESTS_FILE,
    RUN_FILE,
    SAMPLE_COLUMNS,
    SAMPLES_FILE,
    FaultEvent,
    FaultStage,
    LedgerEntry,
    Mark,
    ObjectEvent,
    ObjectEventType,
    Phase,
)
from harness.history.writer import SAMPLES_JOURNAL

T = TypeVar("T")

LOAD_START_MARK = "load_start"
"""Set by the supervisor; the load's start is known from it when run.json was never written."""


@dataclass(frozen=True, slots=True)
class _Problem:
    """Something of the history that could not be read. ``kinds`` is whom it blinds."""

    kinds: tuple[str, ...]
    reason: str
    since_ns: int | None = None


_SAMPLE_TEXTS = [name for name, kind in SAMPLE_COLUMNS.items() if kind == "string"]


def empty_samples() -> pd.DataFrame:
    return pd.DataFrame(columns=list(SAMPLE_COLUMNS)).astype(SAMPLE_COLUMNS)


def read_faults(history_dir: Path) -> tuple[FaultEvent, ...]:
    """The faults so far, also while a run goes on; lines that cannot be read are left to ``History.load`` to report."""
    return _read_lines(history_dir / FAULTS_FILE, fault_event, [])


@dataclass(frozen=True, slots=True)
class History:
    """One recorded run. Checks and report see nothing else of it."""

    requests: pd.DataFrame = field(default_factory=empty_requests)
    objects: Recording = field(default_factory=Recording)
    samples: pd.DataFrame = field(default_factory=empty_samples)
    faults: tuple[FaultEvent, ...] = ()
    marks: tuple[Mark, ...] = ()
    run: RunInfo = field(default_factory=RunInfo)
    dir: Path | None = None
    ledger: tuple[LedgerEntry, ...] | None = None
    """The second book, kept by fake model servers; None where there is none."""

    @property
    def recorded_until_ns(self) -> int:
        """The load's end, or the last event after it. Events may be dropped, so the last one alone ends nothing."""
        return max([self.run.load_end_ns, *(event.t_ns for event in self.objects[-1:])])

    @property
    def phases(self) -> tuple[Phase, ...]:
        return self.run.phases

    def __post_init__(self) -> None:
        # Anew for each history: what is kept of one is never an answer about another.
        object.__setattr__(self, "objects", Recording(self.objects))

    @property
    def gaps(self) -> tuple[ObjectEvent, ...]:
        return self.objects.gaps

    def phase(self, name: str) -> Phase | None:
        return next((p for p in self.phases if p.name == name), None)

    @classmethod
    @collector_resting()
    def load(cls, run_dir: Path) -> History:
        """Raises ``BadInput`` only when the folder is no run at all."""
        history_dir = run_dir / "history"
        if not history_dir.is_dir():
            raise BadInput(
                "there is no recorded run here: the folder has no history/",
                where=Where(str(run_dir)),
                hint="give the folder of one run, reports/<experiment>/<utc-start>",
            )
        seals = broken_seals(history_dir)
        problems = [_Problem(RECORDED_KINDS if n == OBJECTS_FILE else (n,), why) for n, why in seals.items()]
        run = _read_run(history_dir, problems)
        if SEAL_FILE not in {path.name for path in history_dir.iterdir()} and run.sealed:
            problems.append(_Problem((SEAL_FILE,), f"{SEAL_FILE} is missing: nothing tells whether files were changed"))
        objects = _read_objects(history_dir / OBJECTS_FILE, run.object_events, problems)
        faults = _read_lines(history_dir / FAULTS_FILE, fault_event, problems)
        marks = _read_lines(history_dir / MARKS_FILE, _mark, problems)
        samples = _read_samples(history_dir, problems, SAMPLES_FILE not in seals)
        requests = _read_requests(run_dir, run, marks, problems, REQUESTS_FILE not in seals)
        ledger = _read_ledger(history_dir / LEDGER_FILE, problems)
        last_ns = _last_ns(run, objects, faults, marks)
        return cls(
            requests,
            Recording((*objects, *_as_gaps(problems, len(objects), last_ns))),
            samples,
            faults,
            marks,
            run,
            run_dir,
            ledger,
        )


def _read_run(history_dir: Path, problems: list[_Problem]) -> RunInfo:
    try:
        return RunInfo.read(history_dir)
    except FileNotFoundError:
        reason = f"{RUN_FILE} is missing: the harness was killed before the run's end"
    except ValueError as error:
        reason = f"{RUN_FILE} cannot be read: {error}"
    problems.append(_Problem((RUN_FILE,), reason))
    return RunInfo(ended="error", ended_detail=reason)


def _read_objects(path: Path, written: int | None, problems: list[_Problem]) -> tuple[ObjectEvent, ...]:
    if not path.exists():
        problems.append(_Problem(RECORDED_KINDS, f"{path.name} is missing"))
        return ()
    file = ObjectsFile(path)
    events = file.events()
    cut = file.cut
    kinds = tuple(dict.fromkeys((*RECORDED_KINDS, *(e.kind for e in events))))
    if not cut and written is not None and len(events) != written:
        problems.append(_Problem(kinds, f"{path.name} holds {len(events)} events, but {written} were written", 0))
    if cut:
        # A checksum that does not match says that something before is not what was written, but not what.
        since = events[-1].t_ns if events and "checksum" not in cut else 0
        problems.append(_Problem(kinds, f"{path.name} is cut after {len(events)} events: {cut}", since))
    return tuple(events)


def fault_event(index: int, raw: dict[str, Any]) -> FaultEvent:
    """Raises KeyError, ValueError, TypeError or AttributeError for what is no line of faults.jsonl."""
    return FaultEvent(
        index=index,
        t_ns=int(raw["t_ns"]),
        fault_id=str(raw["fault_id"]),
        fault=str(raw["fault"]),
        stage=FaultStage(raw["stage"]),
        targets=tuple(raw.get("targets") or ()),
        fidelity=str(raw.get("fidelity") or ""),
        detail=str(raw.get("detail") or ""),
        disruptive=bool(raw.get("disruptive", True)),
    )


def _mark(index: int, raw: dict[str, Any]) -> Mark:
    return Mark(index, int(raw["t_ns"]), str(raw["name"]), str(raw.get("value") or ""), str(raw.get("detail") or ""))


def _json_lines(path: Path, problems: list[_Problem]) -> Iterator[tuple[int, Any]]:
    if not path.exists():
        problems.append(_Problem((path.name,), f"{path.name} is missing"))
        return
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines):
                try:
                    yield number, loads(line)
                except ValueError:
                    problems.append(_Problem((path.name,), f"{path.name}: line {number + 1} is cut or damaged"))
    except OSError as error:
        problems.append(_Problem((path.name,), f"{path.name} cannot be read: {error.strerror}"))


def _read_lines(path: Path, parse: Callable[[int, dict[str, Any]], T], problems: list[_Problem]) -> tuple[T, ...]:
    items: list[T] = []
    for number, raw in _json_lines(path, problems):
        try:
            items.append(parse(number, raw))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            problems.append(_Problem((path.name,), f"{path.name}: line {number + 1}: {error!r}"))
    return tuple(items)


def _read_ledger(path: Path, problems: list[_Problem]) -> tuple[LedgerEntry, ...] | None:
    """By the line that opened them. None without a file: only fakes keep such a book."""
    if not path.exists():
        return None
    opened: list[LedgerEntry | None] = []
    latest: dict[tuple[str, str], tuple[int, int, int]] = {}
    for index, raw in _json_lines(path, problems):
        try:
            key = (intern(str(raw["pod"])), str(raw["id"]).partition("-")[2])
            if raw["e"] == "open":
                if (lost := latest.get(key)) is not None:  # opened again, so nobody will close the first
                    opened[lost[0]] = LedgerEntry(lost[1], *key, lost[2])
                latest[key] = (len(opened), index, int(raw["prompt_tokens"]))
                opened.append(None)
            elif (began := latest.get(key)) is not None:
                place, at, prompt = began
                finish = raw["finish"]
                opened[place] = LedgerEntry(
                    at, *key, prompt, True, int(raw["sent_tokens"]), int(raw["sent_events"]),
                    intern(finish) if finish else None,
                )  # fmt: skip
                del latest[key]
        except (KeyError, ValueError, TypeError) as error:
            problems.append(_Problem((path.name,), f"{path.name}: line {index + 1}: {error!r}"))
    for key, (place, at, prompt) in latest.items():
        opened[place] = LedgerEntry(at, *key, prompt)
    return tuple(entry for entry in opened if entry is not None)


def _read_samples(history_dir: Path, problems: list[_Problem], trusted: bool) -> pd.DataFrame:
    path = history_dir / SAMPLES_FILE
    if trusted and (frame := _read_parquet(path, problems, _typed_samples, read_dictionary=_SAMPLE_TEXTS)) is not None:
        return frame
    journal = history_dir / SAMPLES_JOURNAL
    if not journal.exists():
        return empty_samples()
    rows = [
        row for _, row in _json_lines(journal, problems) if isinstance(row, list) and len(row) == len(SAMPLE_COLUMNS)
    ]
    return _typed_samples(pd.DataFrame(rows, columns=list(SAMPLE_COLUMNS)))


def _typed_samples(frame: pd.DataFrame) -> pd.DataFrame:
    """Texts as categories: there are millions of them, and few that differ."""
    types = SAMPLE_COLUMNS | dict.fromkeys(_SAMPLE_TEXTS, "category")
    return frame.reindex(columns=list(SAMPLE_COLUMNS)).astype(types)


def _read_parquet(
    path: Path,
    problems: list[_Problem],
    typed: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame,
    read_dictionary: list[str] | None = None,
) -> pd.DataFrame | None:
    """None for what is missing or damaged; damage also shows in checksums, names of columns, and types."""
    if not path.exists():
        problems.append(_Problem((path.name,), f"{path.name} is missing: the harness was killed before it wrote it"))
        return None
    try:
        return typed(pd.read_parquet(path, page_checksum_verification=True, read_dictionary=read_dictionary))
    except (OSError, ValueError, TypeError, KeyError, NotImplementedError) as error:
        problems.append(_Problem((path.name,), f"{path.name} cannot be read: {error}"))
        return None


def _read_requests(
    run_dir: Path, run: RunInfo, marks: tuple[Mark, ...], problems: list[_Problem], trusted: bool
) -> pd.DataFrame:
    frame = _read_parquet(run_dir / "history" / REQUESTS_FILE, problems, typed_requests) if trusted else None
    if frame is not None:
        return frame
    schedule_path = run_dir / "schedule.parquet"
    if not schedule_path.exists():
        return empty_requests()
    schedule = _read_parquet(schedule_path, problems)
    if schedule is None:
        return empty_requests()
    # A killed harness leaves the load's own records, which are enough to account for every arrival.
    records = read_records(run_dir / "load" / "records.jsonl")
    marked_ns = next((m.t_ns for m in marks if m.name == LOAD_START_MARK), 0)
    return build_requests(schedule, records, run.phases, load_start_ns=run.load_start_ns or marked_ns)


def _last_ns(
    run: RunInfo, objects: tuple[ObjectEvent, ...], faults: tuple[FaultEvent, ...], marks: tuple[Mark, ...]
) -> int:
    return max([run.load_end_ns, *(e.t_ns for e in objects[-1:]), *(f.t_ns for f in faults), *(m.t_ns for m in marks)])


def _as_gaps(problems: list[_Problem], first_index: int, last_ns: int) -> tuple[ObjectEvent, ...]:
    gaps: list[ObjectEvent] = []
    for problem in problems:
        for kind in problem.kinds:
            gap = ObjectEvent(
                0, last_ns, kind, ObjectEventType.GAP, since_ns=problem.since_ns or 0, reason=problem.reason
            )
            gaps.append(replace(gap, index=first_index + len(gaps)))
    return tuple(gaps)
