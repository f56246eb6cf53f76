"""The verbs on stored resources over HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aiohttp import web

from fakes.kube.api import Api, Write
from fakes.kube.codec import dump
from fakes.kube.deletion import Deleted
from fakes.kube.kinds import Kind
from fakes.kube.listing import Listing
from fakes.kube.negotiation import Form, form_of
from fakes.kube.podlogs import PodLogs, asked, read_log
from fakes.kube.pods import bind, evict, named_body
from fakes.kube.requests import Target, delete_options, integer, is_true, patch_type, read_body, write_of
from fakes.kube.scale import patch_scale, scale_of, update_scale
from fakes.kube.shown import answer, data_of, partial, shown
from fakes.kube.status import (
    bad_option,
    forbidden_field,
    method_not_allowed,
    no_such_path,
    not_found,
    not_served,
    required,
    success_body,
)
from fakes.kube.store import Stored
from fakes.kube.streaming import WatchStream
from fakes.kube.tables import table
from harness.kube import port
from harness.kube.port import PatchType

_NOT_SERVED = frozenset({"exec", "attach", "portforward", "proxy", "ephemeralcontainers", "resize", "token"})
_LOG_NUMBERS = ("tailLines", "sinceSeconds", "limitBytes")


class Verbs:
    """One per server."""

    def __init__(self, api: Api, logs: PodLogs | None) -> None:
        self._api = api
        self._logs = logs
        self._listing = Listing(api)

    async def serve(self, request: web.Request, target: Target) -> web.StreamResponse:
        if target.subresource:
            return await self._subresource(request, target)
        if target.name:
            return await self._item(request, target, target.name)
        return await self._collection(request, target)

    async def _collection(self, request: web.Request, target: Target) -> web.StreamResponse:
        match request.method:
            case "GET":
                if is_true(request.query.get("watch")):
                    return await self._watch(request, target)
                return self._listing.answer(request, target)
            case "POST" if target.namespace or not target.kind.resource.namespaced:
                write = write_of(request)
                body = await read_body(request, write, target.kind)
                stored = self._api.create(target.kind.resource, target.namespace, body, write)
                return self._shown(request, target.kind, stored, write, 201)
            case "DELETE" if target.kind.collections and (target.namespace or not target.kind.resource.namespaced):
                return await self._delete_collection(request, target)
        raise method_not_allowed()

    async def _item(self, request: web.Request, target: Target, name: str) -> web.StreamResponse:
        kind, resource, namespace = target.kind, target.kind.resource, target.namespace
        match request.method:
            case "GET":
                if is_true(request.query.get("watch")):
                    return await self._watch(request, target)
                return self._shown(request, kind, self._api.get(resource, namespace, name))
            case "PUT":
                write = write_of(request)
                body = await read_body(request, write, kind)
                new = kind.create_on_update and not self._api.exists(resource, namespace, name)
                stored = self._api.update(resource, namespace, name, body, write)
                return self._shown(request, kind, stored, write, 201 if new else 200)
            case "PATCH":
                return await self._patch(request, target, name)
            case "DELETE":
                body = await read_body(request)
                options = delete_options(request, body)
                deleted = self._api.deleter.delete(resource, self._api.get(resource, namespace, name), options)
                return answer(_deletion(kind, deleted))
        raise method_not_allowed()

    async def _patch(self, request: web.Request, target: Target, name: str) -> web.StreamResponse:
        kind, resource, namespace = target.kind, target.kind.resource, target.namespace
        type = patch_type(request)
        write = write_of(request)
        body = await read_body(request)
        force = request.query.get("force")
        if type is not None and force is not None:
            raise bad_option("PatchOptions", forbidden_field("force", "may not be specified for non-apply patch"))
        if type is None:
            if not request.query.get("fieldManager"):
                raise _manager_required()
            write = replace(write, operation="Apply")
            stored, created = self._api.apply(
                resource, namespace, name, body, write, target.subresource, force=is_true(force)
            )
            return self._shown(request, kind, stored, write, 201 if created else 200)
        stored = self._api.patch(resource, namespace, name, body, type, write, target.subresource)
        return self._shown(request, kind, stored, write)

    async def _subresource(self, request: web.Request, target: Target) -> web.StreamResponse:
        sub, kind, name = target.subresource, target.kind, target.name or ""
        if sub in _NOT_SERVED and kind.resource in (port.POD, port.NODE, port.SERVICE, port.SERVICE_ACCOUNT):
            raise not_served(f"{kind.resource.plural}/{sub}")
        if sub in ("status", "scale") and kind.custom and sub not in kind.subresources:
            raise not_found(kind.resource, name)
        if sub not in kind.subresources or target.rest:
            raise no_such_path()
        match sub, request.method:
            case "status", "GET":
                return self._shown(request, kind, self._api.get(kind.resource, target.namespace, name))
            case "status", "PUT":
                write = write_of(request)
                body = await read_body(request, write, kind)
                stored = self._api.update(kind.resource, target.namespace, name, body, write, "status")
                return self._shown(request, kind, stored, write)
            case "status", "PATCH":
                return await self._patch(request, target, name)
            case "finalize", "PUT":
                write = write_of(request)
                body = await read_body(request, write, kind)
                stored = self._api.update(kind.resource, None, name, body, write, "finalize")
                return self._shown(request, kind, stored, write)
            case "scale", _:
                return await self._scale(request, target, name)
            case "eviction", "POST":
                body = named_body(await read_body(request), "Eviction", "policy/v1")
                evict(self._api, target.namespace or "", name, body, write_of(request))
                return answer(success_body(201), 201)
            case "binding", "POST":
                body = named_body(await read_body(request), "Binding", "v1")
                bind(self._api, target.namespace or "", name, body, write_of(request))
                return answer(success_body(201), 201)
            case "log", "GET":
                return await self._log(request, target, name)
        raise method_not_allowed()

    async def _log(self, request: web.Request, target: Target, name: str) -> web.StreamResponse:
        pod = self._api.get(port.POD, target.namespace, name).object
        numbers = {key: integer(request, key) for key in _LOG_NUMBERS}
        what = asked(pod, request.query, numbers, self._api.store.wall.now())
        if not pod["spec"].get("nodeName"):
            return web.Response(status=204)
        if self._logs is None:
            raise not_served("pods/log: this world keeps no logs of its containers")
        text = read_log(self._logs, what)
        if not what.follow:
            return web.Response(text=text, content_type="text/plain")
        more = self._logs.follow(what.namespace, what.pod, what.container, timestamps=what.timestamps)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        await response.write(text.encode())
        try:
            async for line in more:
                await response.write(line.encode())
        except ConnectionError:
            return response  # the reader has gone
        return response

    async def _scale(self, request: web.Request, target: Target, name: str) -> web.StreamResponse:
        resource, namespace = target.kind.resource, target.namespace
        if request.method == "GET":
            return answer(scale_of(target.kind, self._api.get(resource, namespace, name).object))
        body = await read_body(request)
        if request.method == "PUT":
            write = write_of(request)
            return answer(update_scale(self._api, resource, namespace, name, body, write), 200, write.warnings)
        if request.method == "PATCH":
            type = patch_type(request) or PatchType.MERGE
            return answer(patch_scale(self._api, resource, namespace, name, body, type, write_of(request)))
        raise method_not_allowed()

    async def _delete_collection(self, request: web.Request, target: Target) -> web.StreamResponse:
        options = delete_options(request, await read_body(request))
        match = self._listing.selection(request, target)
        found = self._api.list(target.kind.resource, target.namespace, match)
        for stored in found:
            self._api.deleter.delete(target.kind.resource, stored, options)
        return self._listing.listed(request, target, found)

    async def _watch(self, request: web.Request, target: Target) -> web.StreamResponse:
        kind = target.kind
        match = self._listing.selection(request, target)
        first = True

        def as_row(stored: Stored) -> bytes:
            nonlocal first
            meta = {"resourceVersion": str(stored.version)}
            include = request.query.get("includeObject", "Metadata")
            now = self._api.store.wall.now()
            data = table(kind, [stored], now, include, meta, columns=first)  # later ones need not repeat them
            first = False
            return data

        def as_view(stored: Stored) -> bytes:
            return data_of(kind, stored)

        def as_metadata(stored: Stored) -> bytes:
            return dump(partial(kind, stored.object))

        plain = as_view if kind.view else Stored.data
        forms = {Form.TABLE: as_row, Form.METADATA: as_metadata, Form.WHOLE: plain}
        render = forms[form_of(request.headers.get("Accept", ""))]
        return await WatchStream(request, self._api.store, kind, target.namespace, match, render).run()

    def _shown(
        self, request: web.Request, kind: Kind, stored: Stored, write: Write | None = None, status: int = 200
    ) -> web.Response:
        warnings = write.warnings if write else ()
        return shown(request, kind, stored, self._api.store.wall.now(), status, warnings)


def _manager_required() -> Exception:
    return bad_option("PatchOptions", required("fieldManager", "is required for apply patch"))


def _deletion(kind: Kind, deleted: Deleted) -> Any:
    """The object while it is still there, and for pods always; else a Status that names what is gone."""
    if not deleted.gone or kind.resource in (port.POD, port.SERVICE, port.SERVICE_ACCOUNT):
        return data_of(kind, deleted.last)
    details = {"name": deleted.last.object["metadata"]["name"], "kind": kind.resource.plural}
    if kind.resource.group:
        details["group"] = kind.resource.group
    return success_body(details=details | {"uid": deleted.last.object["metadata"]["uid"]})
