"""The OpenAI-compatible HTTP side of one server: routes, statuses, headers and bodies as vLLM 0.32 answers.

A stream's headers go out at once, whatever the queue; its first event comes with the first token.
"""

from __future__ import annotations

import asyncio
import json
from zlib import crc32

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from fakes.metrics.exposition import CONTENT_TYPE
from fakes.vllm.completions import DRAINING, Completions
from fakes.vllm.event_stream import EventStream, KeptAlive
from fakes.vllm.requests import CompletionRequest, RequestRefused
from fakes.vllm.sse import EventEncoder

BODY_BYTES_MAX = 64 * 2**20
VERSION = "0.32.0"
COMMON = {"Server": "uvicorn", "Vary": "Origin"}
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
        middlewares: list[Middleware] = [self._stand_still]
        middlewares += [self._check_key] if self._flags.api_keys else []
        app = web.Application(client_max_size=BODY_BYTES_MAX, middlewares=middlewares)
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

    @web.middleware
    async def _stand_still(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        await self._completions.unless_silent()
        return await handler(request)

    @web.middleware
    async def _check_key(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Only what is under /v1 needs one."""
        bearer, _, key = request.headers.get("Authorization", "").partition(" ")
        if request.path.startswith("/v1") and not (bearer == "Bearer" and key in self._flags.api_keys):
            return json_response(401, b'{"error":"Unauthorized"}')
        return await handler(request)

    # Completions.

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        return await self._completion(http, chat=True)

    async def _text(self, http: web.Request) -> web.StreamResponse:
        return await self._completion(http, chat=False)

    async def _completion(self, http: web.Request, *, chat: bool) -> web.StreamResponse:
        begun_s = asyncio.get_running_loop().time()
        headers = COMMON
        given = http.headers.get("X-Request-Id")
        if self._flags.enable_request_id_headers:
            headers = headers | {"X-Request-Id": self._completions.header_id(given)}
        try:
            response = await self._answer(http, chat, given, headers)
        except RequestRefused as refused:
            if refused.message == DRAINING:
                headers = {"Server": "uvicorn"}  # the answer comes from below the middleware that adds the others
            response = json_response(refused.status, refused.body(), headers)
        self._count(http, http.path, response, asyncio.get_running_loop().time() - begun_s)
        return response

    def _count(self, http: web.Request, handler: str, response: web.StreamResponse, seconds: float = 0.0) -> None:
        answered = len(response.body) if isinstance(response, web.Response) and isinstance(response.body, bytes) else 0
        self._metrics.http.observe(
            handler, http.method, response.status, asked_bytes=http.content_length or 0, answered_bytes=answered,
            seconds=seconds,
        )  # fmt: skip

    async def _answer(
        self, http: web.Request, chat: bool, given: str | None, headers: dict[str, str]
    ) -> web.StreamResponse:
        body = await http.read()
        if http.content_type != "application/json":
            message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
            raise RequestRefused(400, "Bad Request", message)
        request = self._completions.accept(body, chat=chat)
        id = self._completions.name(given, chat=chat)
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
        stream = EventStream(encoder, transport)
        if interval_s := self._flags.sse_keep_alive_s:
            kept = KeptAlive(stream, transport, interval_s)
            try:
                await self._completions.stream(request, id, kept)
            finally:
                kept.stop()
        else:
            await self._completions.stream(request, id, stream)
        return response

    # The rest.

    async def _models(self, http: web.Request) -> web.Response:
        models = [self._model(name) for name in self._flags.names]
        body = json.dumps({"object": "list", "data": models}, separators=(",", ":")).encode()
        response = json_response(200, body)
        self._count(http, http.path, response)
        return response

    def _model(self, name: str) -> dict[str, object]:
        created = self._completions.started_unix
        permission = {
            "id": f"modelperm-{crc32(name.encode()):08x}{created & 0xFFFFFFFF:08x}",
            "object": "model_permission",
            "created": created,
            "allow_create_engine": False,
            "allow_sampling": True,
            "allow_logprobs": True,
            "allow_search_indices": False,
            "allow_view": True,
            "allow_fine_tuning": False,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        return {
            "id": name,
            "object": "model",
            "created": created,
            "owned_by": "vllm",
            "root": self._flags.model,
            "parent": None,
            "max_model_len": self._flags.max_model_len,
            "permission": [permission],
        }

    async def _health(self, http: web.Request) -> web.Response:
        return web.Response(status=503 if self._completions.dead else 200, headers=COMMON)

    async def _version(self, http: web.Request) -> web.Response:
        return json_response(200, f'{{"version":"{VERSION}"}}'.encode())

    async def _load(self, http: web.Request) -> web.Response:
        load = len(self._completions.replies) if self._flags.enable_server_load_tracking else 0
        return json_response(200, f'{{"server_load":{load}}}'.encode())

    async def _metrics_text(self, http: web.Request) -> web.Response:
        if self._completions.metrics_fail:
            return web.Response(status=503, headers=COMMON)
        return web.Response(body=self._metrics.text().encode(), headers=COMMON | {"Content-Type": CONTENT_TYPE})

    async def _unknown(self, http: web.Request) -> web.Response:
        allow = self._allowed.get(http.path)
        response = detail(405, "Method Not Allowed", allow) if allow else detail(404, "Not Found")
        self._count(http, "none", response)
        return response
