"""meta.k8s.io/v1 Tables, which kubectl prints: columns and cells come from ``columns``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from fakes.kube.cells import Column
from fakes.kube.codec import dump
from fakes.kube.custom_columns import columns_of
from fakes.kube.kinds import Kind
from fakes.kube.status import bad_request, bad_value
from fakes.kube.store import Stored
from harness.kube.port import Json

_FORMATS = {"Name": "name"}


def table(
    kind: Kind, found: Sequence[Stored], now: datetime, include: str, meta: Json, *, columns: bool = True
) -> bytes:
    """``include`` is what each row carries of its object: None, Metadata or Object."""
    if include not in ("", "None", "Metadata", "Object"):
        why = bad_value("includeObject", include, "must be 'Metadata', 'Object', 'None', or empty")
        raise bad_request(f"Unable to convert to Table as requested: {why}")
    shown = columns_of(kind)
    body: Json = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    body["columnDefinitions"] = [_definition(c) for c in shown] if columns else None
    body["rows"] = [_row(kind, shown, stored.object, now, include) for stored in found]
    return dump(body)


def _definition(column: Column) -> Json:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format or _FORMATS.get(column.name, ""),
        "description": column.description,
        "priority": 1 if column.wide else 0,
    }


def _row(kind: Kind, columns: Sequence[Column], obj: Json, now: datetime, include: str) -> Json:
    row: Json = {"cells": [column.cell(obj, now) for column in columns], "object": None}
    if include in ("", "Metadata"):
        meta = kind.view.outward(obj)["metadata"] if kind.view else obj["metadata"]
        row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    elif include == "Object":
        row["object"] = kind.view.outward(obj) if kind.view else obj
    return row
