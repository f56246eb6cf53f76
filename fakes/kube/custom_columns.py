"""additionalPrinterColumns of CRDs: the JSONPath that they are written in, as far as CRDs use it.

Fields (with escaped dots), indexes, and filters ``[?(@.type=="Ready")]``; what a path does not find is an empty cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from fakes.clock import parse_stamp
from fakes.kube.cells import AGE, NAME, NAME_AND_AGE, Column, duration
from fakes.kube.columns import COLUMNS
from fakes.kube.kinds import Kind
from harness.kube.port import Json

_STEP = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\\])+)
      | \[(?P<index>-?\d+)\]
      | \[['"](?P<quoted>[^'"]+)['"]\]
      | \[\?\(@\.(?P<key>[^=!<> ]+)\s*==\s*['"](?P<value>[^'"]*)['"]\)\]
      | (?P<all>\[\*\])""",
    re.X,
)
_CUSTOM_AGE = Column("Age", AGE.cell, "date")
Walk = Callable[[list[Any]], list[Any]]


def columns_of(kind: Kind) -> tuple[Column, ...]:
    if not kind.custom:
        return COLUMNS.get(kind.resource.kind, NAME_AND_AGE)
    if not kind.columns:
        return COLUMNS.get(kind.resource.kind) or (NAME, _CUSTOM_AGE)
    return (NAME, *(_column(raw) for raw in kind.columns))


def _column(raw: Json) -> Column:
    read = _reader(raw.get("jsonPath", ""))
    type_ = raw.get("type", "string")

    def cell(obj: Json, now: datetime) -> Any:
        found = read(obj)
        if not found:
            return None
        value = found[0]
        if type_ == "date":
            return duration((now - parse_stamp(str(value))).total_seconds()) if value else "<unknown>"
        if type_ == "string":
            return ",".join(_text(v) for v in found)
        return value

    wide = int(raw.get("priority", 0)) > 0
    return Column(raw["name"], cell, type_, wide, raw.get("description", ""), raw.get("format", ""))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _reader(path: str) -> Callable[[Json], list[Any]]:
    steps = [_step(found) for found in _STEP.finditer(path if path.startswith((".", "[")) else f".{path}")]

    def read(obj: Json) -> list[Any]:
        values: list[Any] = [obj]
        for step in steps:
            values = step(values)
        return values

    return read


def _step(found: re.Match[str]) -> Walk:
    field = found["field"] or found["quoted"]
    if field:
        name = field.replace("\\", "")
        return lambda values: [v[name] for v in values if isinstance(v, dict) and name in v]
    if found["index"]:
        place = int(found["index"])
        return lambda values: [v[place] for v in values if isinstance(v, list) and -len(v) <= place < len(v)]
    if found["all"]:
        return lambda values: [item for v in values for item in (v if isinstance(v, list) else [])]
    key, wanted = found["key"], found["value"]
    return lambda values: [
        item
        for v in values
        if isinstance(v, list)
        for item in v
        if isinstance(item, dict) and _text(item.get(key)) == wanted
    ]
