"""The metrics APIs as a server of their own, for a real API server to send requests on to (its APIService objects).

Who may ask is that server's business: it comes with a certificate that this one has been told to insist on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from aiohttp import web

from fakes.kube.status import status_body
from harness.kube.port import Json


class MetricsApi(Protocol):
    @property
    def group(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def resources(self) -> list[Json]: ...

    async def handle(self, path: str, query: Mapping[str, str]) -> tuple[int, Json]: ...


def metrics_app(apis: Sequence[MetricsApi]) -> web.Application:
    served = {(api.group, api.version): api for api in apis}

    async def serve(request: web.Request) -> web.Response:
        match [step for step in request.path.split("/") if step]:
            case ["healthz" | "livez" | "readyz", *_]:
                return web.Response(text="ok")
            case ["apis", group, version] if api := served.get((group, version)):
                return web.json_response(_resource_list(api))
            case ["apis", group, version, *rest] if api := served.get((group, version)):
                if request.method != "GET":
                    return _status(405, "MethodNotAllowed", f"{group}/{version} is read-only")
                status, body = await api.handle("/".join(rest), request.query)
                return web.json_response(body, status=status)
        return _status(404, "NotFound", "the server could not find the requested resource")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", serve)
    return app


def _resource_list(api: MetricsApi) -> Json:
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{api.group}/{api.version}",
        "resources": api.resources,
    }


def _status(code: int, reason: str, message: str) -> web.Response:
    return web.json_response(status_body(code, reason, message), status=code)
