"""The verbs on stored resources over HTTP."""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from fakes.kube.api import Api
from fakes.kube.apply import apply
from fakes.kube.codec import dump
from fakes.kube.deletion import Deleted, DeleteOptions
from fakes.kube.kinds import Kind
from fakes.kube.pods import bind, delete_options, evict
from fakes.kube.requests import Target, integer, is_true, patch_type, read_body, write_of
from fakes.kube.scale import patch_scale, scale_of, update_scale
from fakes.kube.selectors import Predicate
from fakes.kube.status import (
    bad_request,
    expired,
    method_not_allowed,
    no_such_path,
    not_served,
    success_body,
    version_too_large,
)
from fakes.kube.store import Stored
from fakes.kube.streaming import WatchStream
from fakes.kube.tables import table, wants_table
from harness.kube import port
from harness.kube.port import Json, PatchType

_SNAPSHOTS = 64
_NOT_SERVED = frozenset({"exec", "attach", "portforward", "proxy", "log", "ephemeralcontainers", "resize", "token"})


def answer(body: bytes | Json, status: int = 200) -> web.Response:
    data = body if isinstance(body, bytes) else dump(body)
    headers = {"Cache-Control": "no-cache, private"}
    return web.Response(body=data, status=status, content_type="application/json", headers=headers)


class Verbs:
    """One per server. ``continue`` tokens stand for snapshots that it keeps; the oldest are forgotten first."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._snapshots: OrderedDict[str, tuple[list[Stored], int]] = OrderedDict()
        self._next_snapshot = 0

    async def serve(self, request: web.Request, target: Target) -> web.StreamResponse:
        if target.subresource:
            return await self._subresource(request, target)
        if target.name:
            return await self._item(request, target, target.name)
        return await self._collection(request, target)

    async def _collection(self, request: web.Request, target: Target) -> web.StreamResponse:
        match request.method:
            case "GET":
                if is_true(request.query.get("watch", "false")):
                    return await self._watch(request, target)
                return self._list(request, target)
            case "POST" if target.namespace or not target.kind.resource.namespaced:
                body = await read_body(request)
                stored = self._api.create(target.kind.resource, target.namespace, body, write_of(request))
                return self._object(request, target.kind, stored, 201)
            case "DELETE":
                return await self._delete_collection(request, target)
        raise method_not_allowed()

    async def _item(self, request: web.Request, target: Target, name: str) -> web.StreamResponse:
        kind, resource, namespace = target.kind, target.kind.resource, target.namespace
        match request.method:
            case "GET":
                if is_true(request.query.get("watch", "false")):
                    return await self._watch(request, target)
                return self._object(request, kind, self._api.get(resource, namespace, name))
            case "PUT":
                body = await read_body(request)
                stored = self._api.update(resource, namespace, name, body, write_of(request))
                return self._object(request, kind, stored)
            case "PATCH":
                return await self._patch(request, target, name)
            case "DELETE":
                body = await read_body(request)
                options = self._delete_options(request, body)
                deleted = self._api.deleter.delete(resource, self._api.get(resource, namespace, name), options)
                return answer(_deletion(kind, deleted))
        raise method_not_allowed()

    async def _patch(self, request: web.Request, target: Target, name: str) -> web.StreamResponse:
        kind, resource, namespace = target.kind, target.kind.resource, target.namespace
        type = patch_type(request)
        body = await read_body(request)
        if type is None:
            stored, created = apply(self._api, kind, namespace, name, body, request.query, target.subresource)
            return self._object(request, kind, stored, 201 if created else 200)
        write = write_of(request)
        stored = self._api.patch(resource, namespace, name, body, type, write, target.subresource)
        return self._object(request, kind, stored)

    async def _subresource(self, request: web.Request, target: Target) -> web.StreamResponse:
        sub, kind, name = target.subresource, target.kind, target.name or ""
        if sub in _NOT_SERVED and kind.resource in (port.POD, port.NODE, port.SERVICE, port.SERVICE_ACCOUNT):
            raise not_served(f"{kind.resource.plural}/{sub}")
        if sub not in kind.subresources or target.rest:
            raise no_such_path()
        match sub, request.method:
            case "status", "GET":
                return self._object(request, kind, self._api.get(kind.resource, target.namespace, name))
            case "status", "PUT":
                body = await read_body(request)
                stored = self._api.update(kind.resource, target.namespace, name, body, write_of(request), "status")
                return self._object(request, kind, stored)
            case "status", "PATCH":
                return await self._patch(request, target, name)
            case "scale", _:
                return await self._scale(request, target, name)
            case "eviction", "POST":
                evict(self._api, target.namespace or "", name, await read_body(request), write_of(request))
                return answer(success_body(201), 201)
            case "binding", "POST":
                bind(self._api, target.namespace or "", name, await read_body(request), write_of(request))
                return answer(success_body(201), 201)
        raise method_not_allowed()

    async def _scale(self, request: web.Request, target: Target, name: str) -> web.StreamResponse:
        resource, namespace = target.kind.resource, target.namespace
        if request.method == "GET":
            return answer(scale_of(self._api.get(resource, namespace, name).object))
        body = await read_body(request)
        if request.method == "PUT":
            return answer(update_scale(self._api, resource, namespace, name, body, write_of(request)))
        if request.method == "PATCH":
            type = patch_type(request) or PatchType.MERGE
            return answer(patch_scale(self._api, resource, namespace, name, body, type, write_of(request)))
        raise method_not_allowed()

    async def _delete_collection(self, request: web.Request, target: Target) -> web.StreamResponse:
        options = self._delete_options(request, await read_body(request))
        match = self._selection(request, target)
        for stored in self._api.list(target.kind.resource, target.namespace, match):
            self._api.deleter.delete(target.kind.resource, stored, options)
        return answer(success_body())

    def _delete_options(self, request: web.Request, body: Any) -> DeleteOptions:
        """The body wins; clients that send none put the options into the query."""
        raw = body if isinstance(body, dict) else {}
        if body is not None and not isinstance(body, dict):
            raise bad_request("the body is no DeleteOptions")
        grace_s = integer(request, "gracePeriodSeconds")
        if grace_s is not None:
            raw = {"gracePeriodSeconds": grace_s} | raw
        if policy := request.query.get("propagationPolicy"):
            raw = {"propagationPolicy": policy} | raw
        return delete_options(raw, write_of(request).dry_run)

    def _selection(self, request: web.Request, target: Target) -> Predicate | None:
        fields = request.query.get("fieldSelector", "")
        if target.name:
            fields = f"metadata.name={target.name}" + (f",{fields}" if fields else "")
        return self._api.predicate(target.kind.resource, request.query.get("labelSelector", ""), fields)

    def _list(self, request: web.Request, target: Target) -> web.Response:
        kind, limit, token = target.kind, integer(request, "limit") or 0, request.query.get("continue", "")
        match = self._selection(request, target)
        if token:
            found, version, snapshot = self._resumed(token)
        else:
            self._check_version(request)
            found, version = self._api.list(kind.resource, target.namespace, match), self._api.store.revision
            snapshot = ""
        meta: Json = {"resourceVersion": str(version)}
        if 0 < limit < len(found):
            found, rest = found[:limit], found[limit:]
            meta |= {"continue": self._kept(rest, version, snapshot), "remainingItemCount": len(rest)}
        if wants_table(request.headers.get("Accept", "")):
            include = request.query.get("includeObject", "Metadata")
            return answer(table(kind, found, self._api.store.wall.now(), include, meta))
        return answer(_joined(kind, found, meta))

    def _check_version(self, request: web.Request) -> None:
        text = request.query.get("resourceVersion", "")
        if not text:
            return
        if not (text.isascii() and text.isdigit()):
            raise bad_request(f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: invalid syntax')
        current = self._api.store.revision
        if int(text) > current:
            raise version_too_large(int(text), current)
        if request.query.get("resourceVersionMatch") == "Exact" and int(text) != current:
            raise expired("The resourceVersion for the provided list is too old.")

    def _kept(self, rest: list[Stored], version: int, old: str) -> str:
        self._snapshots.pop(old, None)
        self._next_snapshot += 1
        key = str(self._next_snapshot)
        self._snapshots[key] = rest, version
        while len(self._snapshots) > _SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return base64.urlsafe_b64encode(json.dumps({"v": "meta.k8s.io/v1", "snapshot": key}).encode()).decode()

    def _resumed(self, token: str) -> tuple[list[Stored], int, str]:
        try:
            key = json.loads(base64.urlsafe_b64decode(token.encode()))["snapshot"]
        except (ValueError, KeyError, TypeError) as e:
            raise bad_request("continue key is not valid: the token was not made by this server") from e
        found = self._snapshots.get(key) if isinstance(key, str) else None
        if found is None:
            raise expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter."
            )
        return *found, key

    async def _watch(self, request: web.Request, target: Target) -> web.StreamResponse:
        kind = target.kind
        match = self._selection(request, target)
        first = True

        def as_row(stored: Stored) -> bytes:
            nonlocal first
            meta = {"resourceVersion": str(stored.version)}
            include = request.query.get("includeObject", "Metadata")
            data = table(kind, [stored], self._api.store.wall.now(), include, meta, columns=first)
            first = False
            return data

        render = as_row if wants_table(request.headers.get("Accept", "")) else Stored.data
        return await WatchStream(request, self._api.store, kind, target.namespace, match, render).run()

    def _object(self, request: web.Request, kind: Kind, stored: Stored, status: int = 200) -> web.Response:
        if request.method == "GET" and wants_table(request.headers.get("Accept", "")):
            meta = {"resourceVersion": str(stored.version)}
            include = request.query.get("includeObject", "Metadata")
            return answer(table(kind, [stored], self._api.store.wall.now(), include, meta), status)
        return answer(stored.data(), status)


def _joined(kind: Kind, found: Sequence[Stored], meta: Json) -> bytes:
    """The list from the bytes that its objects have already; nothing is serialised twice."""
    head = {"kind": f"{kind.resource.kind}List", "apiVersion": kind.resource.api_version, "metadata": meta}
    return dump(head)[:-1] + b',"items":[' + b",".join(s.data() for s in found) + b"]}"


def _deletion(kind: Kind, deleted: Deleted) -> bytes | Json:
    """The object while it is still there, and for pods always; else a Status that names what is gone."""
    if not deleted.gone or kind.resource == port.POD:
        return deleted.last.data()
    details = {"name": deleted.last.object["metadata"]["name"], "kind": kind.resource.plural}
    if kind.resource.group:
        details["group"] = kind.resource.group
    return success_body(details=details | {"uid": deleted.last.object["metadata"]["uid"]})
