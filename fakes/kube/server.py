"""The embedded Kubernetes API over HTTP: for kubectl, the official clients and Chaos Toolkit, unmodified."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from aiohttp import web

from fakes.kube import discovery, openapi
from fakes.kube.api import Api
from fakes.kube.codec import dump
from fakes.kube.podlogs import PodLogs
from fakes.kube.requests import parse_target, read_body
from fakes.kube.reviews import review
from fakes.kube.shown import answer
from fakes.kube.status import failure, method_not_allowed, no_such_path, status_body
from fakes.kube.store import Store
from fakes.kube.streaming import BOOKMARK_S, OPEN, close_watches
from fakes.kube.verbs import Verbs
from harness.kube.port import ApiError, Json

_log = logging.getLogger(__name__)
_LARGEST_BODY = 3 * 1024 * 1024

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AggregatedApi(Protocol):
    """An API group that is answered by somebody else, such as custom.metrics.k8s.io."""

    @property
    def group(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def resources(self) -> list[Json]:
        """APIResource entries for discovery."""
        ...

    async def handle(self, path: str, query: Mapping[str, str]) -> tuple[int, Json]:
        """A GET of ``path`` (after /apis/GROUP/VERSION/): status and body."""
        ...


def bookmark_period_s(time_scale: float) -> float:
    """Clock seconds between bookmarks: a minute of the scenario, as a real API server has it (kubernetes v1.37,
    k8s.io/apiserver storage/cacher), but never less than a second."""
    return max(1.0, 60.0 / time_scale)


def make_app(
    store: Store, aggregated: Sequence[AggregatedApi] = (), *, logs: PodLogs | None = None, bookmark_s: float = 60.0
) -> web.Application:
    """``logs`` says what the containers of pods have written; without it the log subresource is 501."""
    app = web.Application(middlewares=[_errors_as_status], client_max_size=_LARGEST_BODY)
    app[BOOKMARK_S] = bookmark_s
    app[OPEN] = weakref.WeakSet()
    app.on_shutdown.append(close_watches)
    app.router.add_route("*", "/{path:.*}", _Server(store, aggregated, logs).handle)
    return app


@web.middleware
async def _errors_as_status(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ApiError as e:
        response = answer(dict(e.body), e.status)
        if retry_s := (e.body.get("details") or {}).get("retryAfterSeconds"):
            response.headers["Retry-After"] = str(retry_s)
        return response
    except web.HTTPRequestEntityTooLarge:
        text = f"Request entity too large: limit is {_LARGEST_BODY}"
        return answer(status_body(413, "RequestEntityTooLarge", text), 413)
    except ConnectionError:
        raise
    except Exception as e:
        # A defect of this server. The client gets a Status as from any API server, and the log gets the traceback.
        _log.exception("%s %s", request.method, request.path_qs)
        text = f"Internal error occurred: {type(e).__name__}: {e}"
        return answer(status_body(500, "InternalError", text), 500)


class _Server:
    def __init__(self, store: Store, aggregated: Sequence[AggregatedApi], logs: PodLogs | None) -> None:
        self._api = Api(store)
        self._kinds = store.kinds
        self._verbs = Verbs(self._api, logs)
        self._aggregated = aggregated

    async def handle(self, request: web.Request) -> web.StreamResponse:
        steps = _steps(request.path)
        match steps:
            case ["healthz" | "livez" | "readyz", *_]:
                return web.Response(text="ok")
            case ["version"]:
                if request.method != "GET":
                    raise method_not_allowed()
                return answer(discovery.version_info(self._api.store))
            case [] | ["api" | "apis"] | ["openapi", *_]:
                return self._described(request, steps)
            case ["api", version, *rest]:
                return await self._group_version(request, "", version, rest)
            case ["apis", group]:
                return self._group(group)
            case ["apis", group, version, *rest]:
                return await self._group_version(request, group, version, rest)
        return _nowhere()

    def _described(self, request: web.Request, steps: list[str]) -> web.Response:
        if request.method != "GET":
            raise method_not_allowed()
        match steps:
            case []:
                return answer({"paths": ["/api", "/api/v1", "/apis", "/healthz", "/openapi/v3", "/version"]})
            case ["openapi", "v3"]:
                return answer(openapi.index(self._kinds))
            case ["openapi", "v3", *path]:
                return _found(openapi.document(self._kinds, "/".join(path)))
            case ["openapi", *_]:
                raise no_such_path()
        core = steps == ["api"]
        version = discovery.wanted_discovery(request.headers.get("Accept", ""))
        if version:
            body = dump(discovery.discovery_list(self._kinds, version, core, self._aggregated))
            return web.Response(
                body=body, headers={"Content-Type": discovery.discovery_type(version), "Vary": "Accept"}
            )
        if core:
            return answer(discovery.api_versions(request.host))
        return answer(discovery.api_group_list(self._kinds, self._aggregated))

    def _group(self, group: str) -> web.Response:
        versions = discovery.groups(self._kinds, self._aggregated).get(group)
        return answer(discovery.api_group(group, versions)) if versions else _nowhere()

    async def _group_version(
        self, request: web.Request, group: str, version: str, rest: list[str]
    ) -> web.StreamResponse:
        if group and group not in discovery.groups(self._kinds, self._aggregated):
            return _nowhere()
        if not rest and request.method != "GET":
            raise method_not_allowed()
        if not rest:
            return _found(discovery.resource_list(self._kinds, group, version, self._aggregated))
        for api in self._aggregated:
            if (api.group, api.version) == (group, version):
                return await self._ask(request, api, rest)
        for plural, kind in discovery.REVIEWS.get((group, version), ()):
            if rest == [plural]:
                if request.method != "POST":
                    raise method_not_allowed()
                return answer(review(plural, kind, f"{group}/{version}", await read_body(request)), 201)
        return await self._verbs.serve(request, parse_target(self._kinds, group, version, rest))

    async def _ask(self, request: web.Request, api: AggregatedApi, rest: list[str]) -> web.Response:
        if request.method != "GET":
            raise failure(405, "MethodNotAllowed", f"{api.group}/{api.version} is read-only", {})
        status, body = await api.handle("/".join(rest), request.query)
        return answer(body, status)


def _steps(path: str) -> list[str]:
    """An empty namespace means all of them."""
    found = path.split("/")
    while "" in found[1:]:
        place = found.index("", 1)
        del found[place - 1 if found[place - 1] == "namespaces" and place + 1 < len(found) else place]
    return [step for step in found if step]


def _nowhere() -> web.Response:
    """Outside of the API a path that is not there is no Status."""
    headers = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
    return web.Response(body=b"404 page not found\n", status=404, headers=headers)


def _found(body: Json | None) -> web.Response:
    if body is None:
        raise no_such_path()
    return answer(body)
