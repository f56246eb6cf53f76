"""The write-ahead journal of every change made to the cluster, and its undo: ``undo.jsonl`` in the run's folder.

A ``planned`` line is on disk (fsynced) before the change is made, so a crash at any moment leaves either no change or a
line that says how to undo it. Lines are only ever added; a torn last line belongs to a change that was never made.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, get_type_hints

from harness.errors import GuardRefused
from harness.faults.port import Clock
from harness.history.jsonl import append_line
from harness.kube.port import Json

UNDO_FILE = "undo.jsonl"


@dataclass(frozen=True, slots=True)
class CancelInterruption:
    """Takes a spot notice back. A lost instance stays lost: bringing capacity back is the system's work."""

    kind: ClassVar[str] = "cancel_interruption"
    instance_id: str
    node: str


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """Names one object of the API."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


@dataclass(frozen=True, slots=True)
class DeleteObjects:
    """Deletes the objects that carry this run's label; one of the same name without it was never ours."""

    kind: ClassVar[str] = "delete_objects"
    run_label: str
    objects: tuple[ObjectRef, ...]


@dataclass(frozen=True, slots=True)
class ResumeProcess:
    """Continues a stopped process, if it is still the one we stopped (its start time tells)."""

    kind: ClassVar[str] = "resume_process"
    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class ResumeLoad:
    """Lets a load generator within this process send again; it cannot outlive the process that reads this."""

    kind: ClassVar[str] = "resume_load"


@dataclass(frozen=True, slots=True)
class ResetKnob:
    """Turns a switch of the emulated world back to where it stood; None is its default."""

    kind: ClassVar[str] = "reset_knob"
    knob: str
    target: str
    earlier: Any = None


@dataclass(frozen=True, slots=True)
class RestoreFields:
    """Gives fields of an object their earlier values back, both as merge patches. A field that no longer has the value
    we gave it belongs to somebody else by now."""

    kind: ClassVar[str] = "restore_fields"
    object: ObjectRef
    ours: Json
    earlier: Json


@dataclass(frozen=True, slots=True)
class NothingLeft:
    """The change leaves nothing that could be undone, for the reason that it gives: what was killed is the system's to
    replace."""

    kind: ClassVar[str] = "nothing_left"
    reason: str


Undo = CancelInterruption | DeleteObjects | ResumeProcess | ResumeLoad | ResetKnob | RestoreFields | NothingLeft

UNDO_KINDS: dict[str, type[Undo]] = {
    undo.kind: undo
    for undo in (CancelInterruption, DeleteObjects, ResumeProcess, ResumeLoad, ResetKnob, RestoreFields, NothingLeft)
}


def undo_to_json(undo: Undo) -> dict[str, Any]:
    return {"kind": undo.kind, **asdict(undo)}


def undo_from_json(raw: Mapping[str, Any]) -> Undo:
    """Raises ``ValueError`` for a kind or shape that this version does not know."""
    values = {key: value for key, value in raw.items() if key != "kind"}
    known = UNDO_KINDS.get(str(raw.get("kind")))
    if known is None:
        raise ValueError(f"unknown kind of undo {raw.get('kind')!r}")
    try:
        if "objects" in values:
            values["objects"] = tuple(_typed(ObjectRef(**ref)) for ref in values["objects"])
        if "object" in values:
            values["object"] = _typed(ObjectRef(**values["object"]))
        undo: Undo = _typed(known(**values))
        return undo
    except (TypeError, KeyError) as error:
        raise ValueError(f"undo of kind {raw.get('kind')!r}: {error}") from error


def _typed(value: Any) -> Any:
    """The dataclass itself, once its values are what it says: whoever undoes it must not stumble over them."""
    hints = get_type_hints(type(value))
    for field in fields(value):
        wanted, found = _TYPES.get(hints[field.name]), getattr(value, field.name)
        if wanted is not None and (not isinstance(found, wanted) or isinstance(found, bool)):
            raise TypeError(f"{field.name} is {found!r}, no {wanted.__name__}")
    return value


_TYPES: Mapping[Any, type] = {str: str, int: int, Json: dict}


@dataclass(frozen=True, slots=True)
class About:
    """The fault behind a change, so that whoever undoes it later can look whether its effect is gone."""

    fault: str
    arguments: Mapping[str, Any]
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UndoEntry:
    """One change, with what became of its undo. ``undo`` is None where the line's undo could not be read."""

    seq: int
    t_ns: int
    fault_id: str
    undo: Undo | None
    done: bool = False
    detail: str = ""
    about: About | None = None

    def __str__(self) -> str:
        return f"{self.fault_id}: {'unreadable' if self.undo is None else self.undo.kind} (seq {self.seq})"


@dataclass(frozen=True, slots=True)
class Replay:
    """The journal as read. ``damaged`` names complete lines that make no sense; a torn tail is none of them."""

    entries: tuple[UndoEntry, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def pending(self) -> tuple[UndoEntry, ...]:
        return tuple(entry for entry in self.entries if not entry.done)


def replay(path: Path) -> Replay:
    """A journal that does not exist is an empty one: nothing was ever changed. One that cannot be read is damaged."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return Replay()
    except OSError as error:
        return Replay(damaged=(f"{path.name}: it cannot be read: {error.strerror or error}",))
    return replay_text(text, path.name)


def replay_text(text: str, name: str = UNDO_FILE) -> Replay:
    """The same of what a journal holds; ``name`` is only for what is damaged in it."""
    whole = text[: text.rfind("\n") + 1]
    entries: dict[int, UndoEntry] = {}
    damaged: list[str] = []
    for number, line in enumerate(whole.split("\n")[:-1], start=1):
        try:
            _apply(json.loads(line), entries)
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            damaged.append(f"{name}:{number}: {type(error).__name__}: {error}")
    return Replay(tuple(entries.values()), tuple(damaged))


def _apply(raw: Mapping[str, Any], entries: dict[int, UndoEntry]) -> None:
    seq = int(raw["seq"])
    match raw["op"]:
        case "planned":
            try:
                undo: Undo | None = undo_from_json(raw["undo"])
                detail = ""
            except ValueError as error:
                undo, detail = None, str(error)
            about = _about(raw.get("about"))
            if seq in entries:
                raise ValueError(f"change {seq} is there already")
            entries[seq] = UndoEntry(seq, int(raw["t_ns"]), str(raw["fault_id"]), undo, False, detail, about)
        case "undone" | "failed":
            entry = entries[seq]
            done = entry.done or raw["op"] == "undone"
            entries[seq] = replace(entry, done=done, detail=str(raw.get("detail", "")))
        case op:
            raise ValueError(f"unknown op {op!r}")


def _about(raw: Mapping[str, Any] | None) -> About | None:
    """None also where it makes no sense: the change is undone all the same, only nobody can look at its effect."""
    try:
        return (
            None if raw is None else About(str(raw["fault"]), dict(raw["arguments"]), tuple(map(str, raw["targets"])))
        )
    except (KeyError, TypeError, ValueError):
        return None


def overlap(one: Undo, other: Undo) -> str | None:
    """What both would put back, where they do: the second remembers the first one's change as what was there before,
    so that taking both back, in whatever order, leaves one of them standing."""
    match one, other:
        case ResetKnob(), ResetKnob() if (one.knob, one.target) == (other.knob, other.target):
            return f"{one.knob} of {one.target}"
        case RestoreFields(), RestoreFields() if one.object == other.object:
            shared = _shared(one.ours, other.ours)
            return f"{shared} of {one.object}" if shared else None
        case CancelInterruption(), CancelInterruption() if one.instance_id == other.instance_id:
            return f"the notice of {one.instance_id}"
    return None


def _shared(one: Json, other: Json) -> str:
    """The path of a field that both patches set; a part that one sets as a whole is all of it."""
    for key in one.keys() & other.keys():
        if not (isinstance(one[key], Mapping) and isinstance(other[key], Mapping)):
            return key
        if inner := _shared(one[key], other[key]):
            return f"{key}.{inner}"
    return ""


class UndoJournal:
    """Appends to one run's journal. The folder must exist; the file comes with the first change."""

    def __init__(self, run_dir: Path, clock: Clock) -> None:
        self.path = run_dir / UNDO_FILE
        self._clock = clock

    def before(self, fault_id: str, undo: Undo, about: About | None = None) -> int:
        """Call before the change it undoes. When this returns, the line is on disk. GuardRefused where another fault
        has changed the same and not taken it back yet: the second change could not be undone rightly."""
        with self._alone():
            return self._before(fault_id, undo, about)

    def _before(self, fault_id: str, undo: Undo, about: About | None) -> int:
        entries = self.replay().entries
        for entry in entries:
            if entry.done or entry.undo is None or entry.fault_id == fault_id:
                continue
            if (what := overlap(entry.undo, undo)) is not None:
                raise GuardRefused(
                    f"{fault_id} would change {what}, which {entry.fault_id} holds",
                    hint="let the one end before the other begins",
                )
        seq = max((entry.seq for entry in entries), default=0) + 1
        new = not entries
        append_line(
            self.path,
            {
                "seq": seq,
                "t_ns": self._clock.now_ns(),
                "fault_id": fault_id,
                "op": "planned",
                "undo": undo_to_json(undo),
                **({} if about is None else {"about": asdict(about)}),
            },
            sync=True,
        )
        if new:
            _sync_folder(self.path.parent)
        return seq

    def undone(self, seq: int, detail: str = "") -> None:
        self._end("undone", seq, detail)

    def failed(self, seq: int, detail: str) -> None:
        self._end("failed", seq, detail)

    def _end(self, op: str, seq: int, detail: str) -> None:
        with self._alone():
            append_line(self.path, {"seq": seq, "op": op, "detail": detail}, sync=True)

    def replay(self) -> Replay:
        return replay(self.path)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Faults run in several threads and processes of a run: of two that come at once the second must see the
        first one's line, or both changes get one number and one of them is forgotten. The lock ends with its holder."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            # A torn line is a change that was never made; left in place it would swallow the next line.
            data = self.path.read_bytes()
            if data and not data.endswith(b"\n"):
                os.ftruncate(fd, data.rfind(b"\n") + 1)
            yield
        finally:
            os.close(fd)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
