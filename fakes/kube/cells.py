"""What a printed column is, and the cells that many kinds share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fakes.clock import parse_stamp
from harness.kube.port import Json

Cell = Callable[[Json, datetime], Any]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    cell: Cell
    type: str = "string"
    wide: bool = False
    description: str = ""
    format: str = ""


def at(obj: Any, *path: str, default: Any = None) -> Any:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return default if obj is None else obj


def field(*path: str, default: Any = "<none>") -> Cell:
    return lambda obj, now: at(obj, *path, default=default)


def text(read: Callable[[Json], Any]) -> Cell:
    return lambda obj, now: read(obj)


def wide(name: str, cell: Cell, type: str = "string") -> Column:
    return Column(name, cell, type, wide=True)


def duration(seconds: float) -> str:
    """As kubectl's HumanDuration: two units at most, coarser the longer it is."""
    s = int(seconds)
    if s < 0:
        return "<invalid>" if s < -1 else "0s"
    if s < 120:
        return f"{s}s"
    minutes, hours, days = s // 60, s // 3600, s // 86400
    if minutes < 10:
        return f"{minutes}m{s % 60}s" if s % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    return f"{days}d" if days < 730 else f"{days // 365}y"


def since(*path: str) -> Cell:
    def cell(obj: Json, now: datetime) -> str:
        text = at(obj, *path)
        return duration((now - parse_stamp(text)).total_seconds()) if text else "<unknown>"

    return cell


NAME = Column("Name", field("metadata", "name"))
AGE = Column("Age", since("metadata", "creationTimestamp"))
NAME_AND_AGE = (NAME, AGE)


def condition(obj: Json, type: str) -> Json | None:
    return next((c for c in at(obj, "status", "conditions", default=[]) if c.get("type") == type), None)


def condition_status(type: str, default: str = "") -> Cell:
    return text(lambda obj: (condition(obj, type) or {}).get("status", default))
