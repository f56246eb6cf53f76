"""Answers over HTTP: bytes of objects in the version that was asked for, lists, tables, warnings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from aiohttp import web

from fakes.kube.codec import dump
from fakes.kube.kinds import Kind
from fakes.kube.negotiation import Form, form_of
from fakes.kube.pieces import Pieces
from fakes.kube.store import Stored
from fakes.kube.tables import table
from harness.kube.port import Json

LONG_LIST = 100
"""Objects; a list of fewer is sent in one."""
_HEADERS = {"Cache-Control": "no-cache, private"}


def answer(body: bytes | Pieces | Json, status: int = 200, warnings: Sequence[str] = ()) -> web.Response:
    data = dump(body) if isinstance(body, dict) else body
    found = web.Response(body=data, status=status, content_type="application/json", headers=_HEADERS)
    for text in warnings:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        found.headers.add("Warning", f'299 - "{escaped}"')
    return found


def data_of(kind: Kind, stored: Stored) -> bytes:
    """The bytes that a version keeps of itself; a view's are made anew."""
    return dump(kind.view.outward(stored.object)) if kind.view else stored.data()


def shown(
    request: web.Request, kind: Kind, stored: Stored, now: datetime, status: int = 200, warnings: Sequence[str] = ()
) -> web.Response:
    form = form_of(request.headers.get("Accept", ""))
    if form is Form.METADATA:
        return answer(dump(partial(kind, stored.object)), status, warnings)
    if form is Form.TABLE:
        meta = {"resourceVersion": str(stored.version)}
        include = request.query.get("includeObject", "Metadata")
        return answer(table(kind, [stored], now, include, meta), status, warnings)
    return answer(data_of(kind, stored), status, warnings)


def partial(kind: Kind, obj: Json) -> Json:
    """Its metadata alone."""
    meta = kind.view.outward(obj)["metadata"] if kind.view else obj["metadata"]
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta}


def partial_list(kind: Kind, found: Sequence[Stored], meta: Json) -> Json:
    items = [partial(kind, s.object) for s in found]
    return {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "items": items}


def joined(kind: Kind, found: Sequence[Stored], meta: Json) -> bytes | Pieces:
    """The list from the bytes that its objects have already; nothing is serialised twice.

    Items of builtin kinds do not repeat kind and apiVersion, those of custom ones do.
    """
    head = {"kind": f"{kind.resource.kind}List", "apiVersion": kind.resource.api_version, "metadata": meta}
    if kind.custom:
        items = [data_of(kind, s) for s in found]
    elif kind.view:
        outward = kind.view.outward
        items = [dump({k: v for k, v in outward(s.object).items() if k not in ("kind", "apiVersion")}) for s in found]
    else:
        items = [s.made or s.item() for s in found]
    begun = dump(head)[:-1] + b',"items":['
    if len(items) < LONG_LIST:
        return begun + b",".join(items) + b"]}"
    return Pieces(begun, items, b"]}")
