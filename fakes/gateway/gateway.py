"""The router in front of the replicas: one address that clients use, requests spread over ready pods.

Endpoints come from EndpointSlices, real addresses from the pods' annotation. A request is sent on to a second replica
only when the first refused the connection, for then nothing of it was sent; it is never sent twice. An answer that
breaks off upstream breaks off for the client too: a reset, never a clean end.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Collection
from random import Random

from aiohttp import web

from fakes.config import GatewayConfig, PlantedBug
from fakes.controllers.informer import Informer
from fakes.controllers.objects import name_of
from fakes.gateway.choosing import Picker, endpoint_of
from fakes.gateway.forwarder import Forwarder, OwnError
from fakes.gateway.links import CLIENTS, Links
from fakes.gateway.metrics import GatewayMetrics
from fakes.gateway.mischief import RETRY_AFTER, GatewayMischief, copying
from fakes.gateway.prefixes import PrefixIndex
from fakes.gateway.router import Backend, Router
from fakes.gateway.upstream import Head, Upstream, UpstreamClosed, UpstreamPool
from fakes.metrics.exposition import CONTENT_TYPE
from fakes.nodes.address import listen_address
from harness.kube.port import ENDPOINT_SLICE, POD, EventType, Json, Kube

SERVICE_LABEL = "kubernetes.io/service-name"
BODY_BYTES_MAX = 64 * 2**20
HOP_BY_HOP = frozenset(
    (
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
        "upgrade", "content-length", "expect",
    )
)  # fmt: skip
AT_ONCE = GatewayConfig(endpoints_lag_s=0.0)
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def request_bytes(http: web.Request, body: bytes) -> bytes:
    """The request as it goes upstream: the client's own headers, but for those of its connection."""
    lines = [f"{http.method} {http.raw_path} HTTP/1.1"]
    lines += [f"{k}: {v}" for k, v in http.headers.items() if k.lower() not in HOP_BY_HOP]
    if body or http.method in ("POST", "PUT", "PATCH"):
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + body


def cut(transport: asyncio.BaseTransport) -> None:
    """Resets a client's connection: no end of chunks, no FIN that could pass for a clean end."""
    sock = transport.get_extra_info("socket")
    if sock is not None and not transport.is_closing():
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    assert isinstance(transport, asyncio.Transport)
    transport.abort()


class Gateway:
    """``run`` watches the endpoints; ``app`` forwards. Serve it with ``runner``: only then does a request also end
    upstream when its client leaves while nothing is being sent."""

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        service: str,
        rng: Random,
        bugs: Collection[PlantedBug] = (),
        config: GatewayConfig = AT_ONCE,
        picker: Picker | None = None,
    ) -> None:
        """Seconds of ``config`` are those of the loop, all of them."""
        self._slices = Informer(kube, ENDPOINT_SLICE, namespace, f"{SERVICE_LABEL}={service}")
        self._pods = Informer(kube, POD, namespace)
        self._namespace = namespace
        self._slices.on_change(self._slice_changed)
        self._pods.on_change(self._pod_changed)
        self._pool = UpstreamPool()
        self._aside: set[asyncio.Future[None]] = set()
        self.router = Router(
            rng,
            keep_terminating=PlantedBug.GATEWAY_ROUTES_TO_TERMINATING in bugs,
            before_ready=PlantedBug.GATEWAY_ROUTES_BEFORE_READY in bugs,
            in_flight_max=config.in_flight_max,
            prefixes=PrefixIndex() if config.policy == "prefix_aware" else None,
            first_only=PlantedBug.GATEWAY_IGNORES_NEW_ENDPOINTS in bugs,
        )
        self.metrics = GatewayMetrics()
        self.links = Links(rng)
        self._picker = picker
        mischief = GatewayMischief(bugs, rng)
        self.forwarder = Forwarder(service, self.router, self.metrics, self.links, mischief, config, self._picker)
        self.endpoints_late_s = 0.0
        """Seconds of the loop by which it hears of its endpoints later than it should."""
        self._lag_s = config.endpoints_lag_s
        self._heard_by_s = 0.0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            if self._picker is None:
                tasks.create_task(self._slices.run())
            tasks.create_task(self._pods.run())

    def app(self) -> web.Application:
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_get("/health", self._health)
        app.router.add_get("/metrics", self._metrics_text)
        app.router.add_route("*", "/{path:.*}", self._forward)
        app.on_cleanup.append(self._close)
        return app

    def runner(self) -> web.AppRunner:
        return web.AppRunner(self.app(), handler_cancellation=True, access_log=None, shutdown_timeout=0.1)

    async def _close(self, app: web.Application) -> None:
        self._pool.close()
        if self._picker is not None:
            await self._picker.close()

    def _pod_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if self._picker is not None:  # what it chooses among are pods, not endpoints of a Service
            own = {"metadata": {"name": f"pod/{name_of(new)}"}, "endpoints": [endpoint_of(new)]}
            self._slice_changed(type, own, None)
        if type is EventType.DELETED or old is None or listen_address(new) != listen_address(old):
            name = name_of(new)
            before = self.router.routable()
            self._close_idle(self.router.pod_changed(name, self._pod(name)))
            self._note_left(before)

    def restart(self, down_s: float) -> None:
        """Its process is killed and comes back ``down_s`` seconds of the loop later; all it carried is reset."""
        self.forwarder.down = True
        self.links.reset(CLIENTS)
        asyncio.get_running_loop().call_later(down_s, self._up)

    def _up(self) -> None:
        self.forwarder.down = False

    def _slice_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        """News never overtake each other, also when they stop being late."""
        loop = asyncio.get_running_loop()
        self._heard_by_s = max(loop.time() + self._lag_s + self.endpoints_late_s, self._heard_by_s)
        if self._heard_by_s > loop.time():
            loop.call_at(self._heard_by_s, self._hear, type, new)
        else:
            self._hear(type, new)

    def _hear(self, type: EventType, new: Json) -> None:
        endpoints: list[Json] = [] if type is EventType.DELETED else new.get("endpoints") or []
        before = self.router.routable()
        self._close_idle(self.router.slice_changed(name_of(new), endpoints, self._pod))
        self._note_left(before)
        self.forwarder.queue.serve()

    def _note_left(self, before: frozenset[str]) -> None:
        if self.router.routable() - before:
            self.forwarder.endpoints_changed()
        if before - self.router.routable():
            self.forwarder.mischief.endpoint_left()

    def _pod(self, name: str) -> Json | None:
        return self._pods.objects.get((self._namespace, name))

    def _close_idle(self, lost: bool) -> None:
        if lost:
            self._pool.forget({b.address for b in self.router.backends.values() if b.address is not None})

    # Requests.

    async def _health(self, http: web.Request) -> web.Response:
        routable = sum(b.routable for b in self.router.backends.values())
        return web.json_response({"status": "ok", "endpoints": routable})

    async def _metrics_text(self, http: web.Request) -> web.Response:
        text = self.metrics.text(self.router, len(self.forwarder.queue))
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def _forward(self, http: web.Request) -> web.StreamResponse:
        body = await http.read()
        self.metrics.came(body)
        request = request_bytes(http, body)
        try:
            return await self.forwarder.forward(lambda backend: self._through(http, request, backend), _own_error, body)
        except ConnectionResetError:
            if http.transport is not None:
                cut(http.transport)
            raise

    async def _through(self, http: web.Request, request: bytes, backend: Backend) -> web.StreamResponse:
        address, mischief = backend.address, self.forwarder.mischief
        if address is None:
            raise ConnectionRefusedError(f"{backend.pod} has no address any more")
        if mischief.sends_twice:
            self._send_again(request, backend)
        try:
            upstream = await self._pool.get(address)
        except ConnectionRefusedError:
            raise
        except OSError as error:
            message = f"cannot connect to {backend.pod}: {error}"
            return _own_error(self.forwarder.counted(OwnError(502, "BadGateway", message, backend)))
        try:
            upstream.send(request, body_follows=http.method != "HEAD")
            try:
                async with asyncio.timeout(self.forwarder.config.answer_s or None):
                    head = await asyncio.shield(upstream.head)
            except TimeoutError:
                return _own_error(self.forwarder.too_late(backend))
            response = self._response(head, backend)
            await response.prepare(http)
            if http.transport is None:
                raise ConnectionResetError("the client left before the headers were sent")
            self.metrics.answered[backend.pod, head.status] += 1
            write = copying(_Writer(http.transport, upstream, chunked=response.chunked), mischief.copies)
            if mischief.retries():
                await self._retried(request, backend, upstream, write)
            else:
                upstream.relay(write)
                await upstream.done
            return response
        except UpstreamClosed as broken:
            if not upstream.head.done() or upstream.head.exception() is not None:
                return _own_error(self.forwarder.broke_before_answer(backend, broken))
            self.metrics.cut[backend.pod] += 1
            if http.transport is not None:
                cut(http.transport)
            return response
        except (asyncio.CancelledError, ConnectionResetError):
            self.metrics.client_left[backend.pod] += 1
            raise
        finally:
            self._pool.put(address, upstream)

    # What planted bugs make of it.

    def _send_again(self, request: bytes, backend: Backend) -> None:
        """To another replica, whose answer nobody hears."""
        other = self.router.pick([backend])
        if other is not None and other.address is not None:
            self._aside.add(task := asyncio.ensure_future(self._unheard(request, other.address)))
            task.add_done_callback(self._aside.discard)

    async def _unheard(self, request: bytes, address: tuple[str, int]) -> None:
        with contextlib.suppress(OSError, UpstreamClosed):
            upstream = await self._pool.get(address)
            upstream.send(request)
            upstream.relay(lambda body: None)
            await upstream.done

    async def _retried(
        self, request: bytes, backend: Backend, upstream: Upstream, write: Callable[[bytes], None]
    ) -> None:
        """Gives the answer up in its middle, and passes on that of another replica from its beginning."""
        seen = 0

        def counting(body: bytes) -> None:
            nonlocal seen
            seen += 1
            write(body)
            if seen == RETRY_AFTER:
                upstream.abort()

        upstream.relay(counting)
        try:
            await upstream.done
        except UpstreamClosed:
            other = self.router.pick([backend])
            if other is None or other.address is None:
                raise
            again = await self._pool.get(other.address)
            again.send(request)
            await again.head
            again.relay(write)
            await again.done

    def _response(self, head: Head, backend: Backend) -> web.StreamResponse:
        headers = [(k, v) for k, v in head.headers if k not in HOP_BY_HOP]
        response = web.StreamResponse(status=head.status, headers=headers)
        for name, value in _serving(backend).items():
            response.headers[name] = value
        if head.length is not None:
            response.content_length = head.length
        elif head.status not in (204, 304):
            response.enable_chunked_encoding()
        return response


def _own_error(error: OwnError) -> web.StreamResponse:
    headers = _serving(error.backend) if error.backend else {}
    return web.Response(status=error.status, body=error.body(), content_type="application/json", headers=headers)


def _serving(backend: Backend) -> dict[str, str]:
    return {"x-serving-pod": backend.pod, "x-serving-node": backend.node}


class _Writer:
    """Frames body bytes for the client as they come; once it has gone, the replica is left, too."""

    __slots__ = ("_chunked", "_transport", "_upstream")

    def __init__(self, transport: asyncio.WriteTransport, upstream: Upstream, *, chunked: bool) -> None:
        self._transport = transport
        self._upstream = upstream
        self._chunked = chunked

    def __call__(self, body: bytes) -> None:
        if self._transport.is_closing():
            self._upstream.abort()
        else:
            self._transport.write(b"%x\r\n%b\r\n" % (len(body), body) if self._chunked else body)
