"""``objects.jsonl.zst`` read back, line by line: it may hold half a million versions of objects.

Versions of an object differ in little, and so do objects of a kind. What is equal in both is kept once, which is what
makes so many of them fit into memory. Nobody may change an object that was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import zstandard

from harness.history.tables import ObjectEvent, ObjectEventType

Json = dict[str, Any]


class ObjectsFile:
    """``events`` reads the file once; then ``cut`` says why it ended early, None when it is whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.cut: str | None = None

    def events(self) -> list[ObjectEvent]:
        found: list[ObjectEvent] = []
        latest: dict[str, Json] = {}
        for number, line in enumerate(self._lines()):
            try:
                event = _object_event(number, loads(line))
            except (ValueError, KeyError, TypeError) as error:
                self.cut = f"line {number + 1} cannot be read ({error!r})"
                break
            key = event.uid or event.name
            if (before := latest.get(key) or latest.get(event.kind)) is not None:
                _share(event.object, before)
            latest[key] = latest[event.kind] = event.object
            found.append(event)
        return found

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        for piece in self._pieces():
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines

    def _pieces(self) -> Iterator[bytes]:
        """All that can be read, in pieces, so that damage in one block costs only what comes after it."""
        frame = zstandard.ZstdDecompressor().decompressobj()
        empty = True
        with self._path.open("rb") as file:
            while raw := file.read(4096):
                empty = False
                try:
                    yield frame.decompress(raw)
                except zstandard.ZstdError as error:
                    self.cut = str(error)
                    return
                if frame.eof:
                    return
        self.cut = "the file is empty" if empty else "its end is missing, so the recorder was killed"


def loads(line: bytes) -> Any:
    """One JSON line; raises ``ValueError`` for what is none."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line)  # which reads what orjson is too strict for, such as NaN


def _object_event(index: int, raw: Json) -> ObjectEvent:
    return ObjectEvent(
        index=index,
        t_ns=int(raw["t_ns"]),
        kind=str(raw["kind"]),
        type=ObjectEventType(raw["type"]),
        object=raw.get("object") or {},
        since_ns=raw.get("since_ns"),
        reason=raw.get("reason"),
    )


def _share(obj: Json, before: Json) -> None:
    """Replaces what is equal in both by the one that is there already."""
    for key, value in obj.items():
        known = before.get(key)
        if known is not None:
            obj[key] = _shared(value, known)


def _shared(value: Any, known: Any) -> Any:
    if type(value) is not type(known):
        return value  # 1 and true are equal
    if value == known:
        return known
    if type(value) is dict:
        _share(value, known)
    elif type(value) is list:
        value[: len(known)] = map(_shared, value, known)
    return value
