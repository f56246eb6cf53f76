"""Answers over HTTP: bytes of objects in the version that was asked for, lists, tables, warnings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from aiohttp import web

from fakes.kube.codec import dump
from fakes.kube.kinds import Kind
from fakes.kube.store import Stored
from fakes.kube.tables import table, wants_table
from harness.kube.port import Json

_HEADERS = {"Cache-Control": "no-cache, private"}


def answer(body: bytes | Json, status: int = 200, warnings: Sequence[str] = ()) -> web.Response:
    data = body if isinstance(body, bytes) else dump(body)
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
    if wants_table(request.headers.get("Accept", "")):
        meta = {"resourceVersion": str(stored.version)}
        include = request.query.get("includeObject", "Metadata")
        return answer(table(kind, [stored], now, include, meta), status, warnings)
    return answer(data_of(kind, stored), status, warnings)


def joined(kind: Kind, found: Sequence[Stored], meta: Json) -> bytes:
    """The list from the bytes that its objects have already; nothing is serialised twice."""
    head = {"kind": f"{kind.resource.kind}List", "apiVersion": kind.resource.api_version, "metadata": meta}
    return dump(head)[:-1] + b',"items":[' + b",".join(data_of(kind, s) for s in found) + b"]}"
