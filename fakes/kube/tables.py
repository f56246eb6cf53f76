"""meta.k8s.io/v1 Tables, which kubectl prints: columns and cells come from ``columns``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from fakes.kube.cells import Column
from fakes.kube.codec import dump
from fakes.kube.custom_columns import columns_of
from fakes.kube.kinds import Kind
from fakes.kube.status import failure
from fakes.kube.store import Stored
from harness.kube.port import Json

_FORMATS = {"Name": "name"}


def wants_table(accept: str) -> bool:
    """True where a Table is the first form that the client takes."""
    for part in accept.split(","):
        parameters = {p.strip() for p in part.split(";")}
        if (
            "as=Table" in parameters
            and "g=meta.k8s.io" in parameters
            and ("v=v1" in parameters or "v=v1beta1" in parameters)
        ):
            return True
        if parameters & {"application/json", "*/*"} and len(parameters) == 1:
            return False
    return False


def table(
    kind: Kind, found: Sequence[Stored], now: datetime, include: str, meta: Json, *, columns: bool = True
) -> bytes:
    """``include`` is what each row carries of its object: None, Metadata or Object."""
    if include not in ("None", "Metadata", "Object"):
        raise failure(422, "Invalid", f'includeObject: Unsupported value: "{include}"', {})
    shown = columns_of(kind)
    body: Json = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    body["columnDefinitions"] = [_definition(c) for c in shown] if columns else []
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
    row: Json = {"cells": [column.cell(obj, now) for column in columns]}
    if include == "Metadata":
        meta = kind.view.outward(obj)["metadata"] if kind.view else obj["metadata"]
        row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    elif include == "Object":
        row["object"] = kind.view.outward(obj) if kind.view else obj
    return row
