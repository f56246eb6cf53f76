"""``objects.jsonl.zst`` read back, line by line: it may hold half a million versions of objects.

Versions of an object differ in little, and so do objects of a kind. What is equal in both is kept once, which is what
makes so many of them fit into memory. A ``spec`` that was read before, letter for letter, is not even parsed again:
most versions of an object change its status alone. Nobody may change an object that was read.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from sys import intern
from typing import Any

import orjson
import zstandard

from harness.history.tables import ObjectEvent, ObjectEventType

Json = dict[str, Any]
_SPEC, _STATUS = b',"spec":{', b',"status":{'
_LEFT_OUT, _LEFT_OUT_TEXT = b'"\\u0000spec"', "\x00spec"
"""Stands in a line for its spec, which is looked up instead."""
_TYPES = {kind.value: kind for kind in ObjectEventType}


class ObjectsFile:
    """``events`` reads the file once; then ``cut`` says why it ended early, None when it is whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.cut: str | None = None

    def events(self) -> list[ObjectEvent]:
        """What was read holds no cycles, and looking for them again and again among millions of objects takes longer
        than reading does."""
        collected = gc.isenabled()
        gc.disable()
        try:
            return self._read()
        finally:
            if collected:
                gc.enable()

    def _read(self) -> list[ObjectEvent]:
        found: list[ObjectEvent] = []
        latest: dict[str, Json] = {}
        specs: dict[bytes, Json] = {}
        for number, line in enumerate(self._lines()):
            try:
                event = _object_event(number, _parsed(line, specs), null=b":null" in line)
            except (ValueError, KeyError, TypeError) as error:
                self.cut = f"line {number + 1} cannot be read ({error!r})"
                break
            obj, kind = event.object, event.kind
            metadata = obj.get("metadata") or {}
            key: str = metadata.get("uid") or metadata.get("name") or ""
            if (before := latest.get(key) or latest.get(kind)) is not None:
                _share(obj, before)
            latest[key] = latest[kind] = obj
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
        pass
    try:
        return json.loads(line)  # which reads what orjson is too strict for, such as NaN
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _parsed(line: bytes, specs: dict[bytes, Json]) -> Json:
    """As ``loads``. ``specs`` holds the specs of lines before, by their text.

    The text between ``"spec":`` and ``"status":`` is cut out only where it is JSON by itself and the rest is, too, with
    the cut in the object's own spec; so what is inside of strings, or nested, can never be taken for it.
    """
    start = line.find(_SPEC)
    end = line.find(_STATUS, start)
    if start < 0 or end < 0:
        raw: Json = loads(line)
        return raw
    start += len(_SPEC) - 1
    text = line[start:end]
    try:
        if (spec := specs.get(text)) is None:
            spec = orjson.loads(text)
        raw = orjson.loads(line[:start] + _LEFT_OUT + line[end:])
        if raw["object"]["spec"] == _LEFT_OUT_TEXT:
            raw["object"]["spec"] = specs[text] = spec
            return raw
    except (orjson.JSONDecodeError, KeyError, TypeError):
        pass  # it was another "spec" or "status"
    raw = loads(line)
    return raw


def _object_event(index: int, raw: Json, *, null: bool) -> ObjectEvent:
    kind = raw["type"]
    if null and isinstance(raw.get("object"), dict):
        raw["object"] = _without_nulls(raw["object"])
    return ObjectEvent(
        index,
        int(raw["t_ns"]),
        intern(str(raw["kind"])),
        _TYPES.get(kind) or ObjectEventType(kind),
        raw.get("object") or {},
        raw.get("since_ns"),
        raw.get("reason"),
    )


def _without_nulls(value: Any) -> Any:
    """A field that is null is one that is not there, for Kubernetes. A copy, for a spec may be kept for other lines."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value if inner is not None]
    return value


def _share(obj: Json, before: Json) -> None:
    """Replaces what is equal in both by the one that is there already; of equal type, for 1 and true are equal."""
    for key, value in obj.items():
        known: Any = before.get(key)
        if known is value or type(value) is not type(known):
            continue
        if value == known:
            obj[key] = known
        elif type(value) is dict:
            _share(value, known)
        elif type(value) is list:
            _share_items(value, known)


def _share_items(items: list[Any], before: list[Any]) -> None:
    for at, (value, known) in enumerate(zip(items, before, strict=False)):
        if type(value) is not type(known):
            continue
        if value == known:
            items[at] = known
        elif type(value) is dict:
            _share(value, known)
        elif type(value) is list:
            _share_items(value, known)
