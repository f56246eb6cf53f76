"""The OpenAI-compatible HTTP side of one server: routes, statuses, headers and bodies as vLLM 0.32 answers.

A stream's headers go out at once, whatever the queue; its first event comes with the first token.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from aiohttp import web

from fakes.metrics.exposition import CONTENT_TYPE
from fakes.vllm.completions import DRAINING, Completions
from fakes.vllm.replies import EventStream
from fakes.vllm.requests import CompletionRequest, RequestRefused
from fakes.vllm.sse import EventEncoder

BODY_BYTES_MAX = 64 * 2**20
VERSION = "0.32.0"
COMMON = {"Server": "uvicorn", "Vary": "Origin"}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
STREAM_TYPE = "text/event-stream; charset=utf-8"


def json_response(status: int, body: bytes, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status, body=body, content_type="application/json", headers=COMMON if headers is None else headers
    )


def detail(status: int, text: str, allow: str = "") -> web.Response:
    headers = COMMON | {"Allow": allow} if allow else COMMON
    return json_response(status, json.dumps({"detail": text}, separators=(",", ":")).encode(), headers)


class Api:
    def __init__(self, completions: Completions) -> None:
        self._completions = completions
        self._flags = completions.flags
        self._metrics = completions.metrics

    def app(self) -> web.Application:
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        routes: list[tuple[str, str, Handler]] = [
            ("POST", "/v1/chat/completions", self._chat),
            ("POST", "/v1/completions", self._text),
            ("GET", "/v1/models", self._models),
            ("GET", "/health", self._health),
            ("GET", "/ping", self._health),
            ("POST", "/ping", self._health),
            ("GET", "/version", self._version),
            ("GET", "/load", self._load),
            ("GET", "/metrics", self._metrics_text),
        ]
        self._allowed: dict[str, str] = {}
        for method, path, handler in routes:
            app.router.add_route(method, path, handler)
            self._allowed[path] = ", ".join(filter(None, (self._allowed.get(path), method)))
        app.router.add_route("*", "/{path:.*}", self._unknown)
        return app

    # Completions.

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        return await self._completion(http, chat=True)

    async def _text(self, http: web.Request) -> web.StreamResponse:
        return await self._completion(http, chat=False)

    async def _completion(self, http: web.Request, *, chat: bool) -> web.StreamResponse:
        try:
            response = await self._answer(http, chat)
        except RequestRefused as refused:
            # The answer to a request during a drain comes from below the middleware that adds Vary.
            headers = {"Server": "uvicorn"} if refused.message == DRAINING else COMMON
            response = json_response(refused.status, refused.body(), headers)
        self._metrics.http(http.path, "POST", response.status)
        return response

    async def _answer(self, http: web.Request, chat: bool) -> web.StreamResponse:
        body = await http.read()
        if http.content_type != "application/json":
            message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
            raise RequestRefused(400, "Bad Request", message)
        request = self._completions.accept(body, chat=chat)
        given = http.headers.get("X-Request-Id")
        id = self._completions.name(given, chat=chat)
        headers = COMMON
        if self._flags.enable_request_id_headers:
            headers = headers | {"X-Request-Id": given or id.partition("-")[2]}
        if request.stream:
            return await self._stream(http, request, id, headers)
        return json_response(200, await self._completions.whole(request, id), headers)

    async def _stream(
        self, http: web.Request, request: CompletionRequest, id: str, headers: dict[str, str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={**headers, "Content-Type": STREAM_TYPE})
        response.enable_chunked_encoding()
        await response.prepare(http)
        transport = http.transport
        if transport is None:
            raise ConnectionResetError("the client left before its headers were sent")
        force_usage = self._flags.enable_force_include_usage
        encoder = EventEncoder(request, id, self._completions.unix_now(), force_usage=force_usage)
        await self._completions.stream(request, id, EventStream(encoder, transport))
        return response

    # The rest.

    async def _models(self, http: web.Request) -> web.Response:
        self._metrics.http(http.path, "GET", 200)
        models = [self._model(name) for name in self._flags.names]
        return json_response(200, json.dumps({"object": "list", "data": models}, separators=(",", ":")).encode())

    def _model(self, name: str) -> dict[str, object]:
        return {
            "id": name,
            "object": "model",
            "created": self._completions.started_unix,
            "owned_by": "vllm",
            "root": self._flags.model,
            "parent": None,
            "max_model_len": self._flags.max_model_len,
            "permission": [],
        }

    async def _health(self, http: web.Request) -> web.Response:
        return web.Response(headers=COMMON)

    async def _version(self, http: web.Request) -> web.Response:
        return json_response(200, f'{{"version":"{VERSION}"}}'.encode())

    async def _load(self, http: web.Request) -> web.Response:
        load = len(self._completions.replies) if self._flags.enable_server_load_tracking else 0
        return json_response(200, f'{{"server_load":{load}}}'.encode())

    async def _metrics_text(self, http: web.Request) -> web.Response:
        return web.Response(body=self._metrics.text().encode(), headers=COMMON | {"Content-Type": CONTENT_TYPE})

    async def _unknown(self, http: web.Request) -> web.Response:
        allow = self._allowed.get(http.path)
        response = detail(405, "Method Not Allowed", allow) if allow else detail(404, "Not Found")
        self._metrics.http("none", http.method, response.status)
        return response
