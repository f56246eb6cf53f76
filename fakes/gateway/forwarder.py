"""A request's way to a replica, whatever carries it: the pick, the second try after a refusal, the own errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fakes.config import GatewayConfig
from fakes.gateway.choosing import Picker, backend_at
from fakes.gateway.ext_proc import Refused
from fakes.gateway.links import CLIENTS, PODS, LinkReset, Links
from fakes.gateway.metrics import GatewayMetrics
from fakes.gateway.mischief import GatewayMischief
from fakes.gateway.prefixes import prefix_hashes
from fakes.gateway.router import Backend, Router
from fakes.gateway.waiting import GatewayQueue

ATTEMPTS = 2
PICKER_PATH = "/v1/chat/completions"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnError:
    """An answer that is the gateway's own. ``backend`` is the replica that it speaks of, if any."""

    status: int
    type: str
    message: str
    backend: Backend | None = None

    def body(self) -> bytes:
        error = {"message": self.message, "type": self.type, "param": None, "code": self.status}
        return json.dumps({"error": error}).encode()


class Forwarder:
    def __init__(
        self,
        service: str,
        router: Router,
        metrics: GatewayMetrics,
        links: Links,
        mischief: GatewayMischief,
        config: GatewayConfig,
        picker: Picker | None = None,
    ) -> None:
        """With a ``picker``, it chooses; the router knows which replicas there are."""
        self.picker = picker
        self.config = config
        self.queue = GatewayQueue(config.queue_max, self._reserve)
        self._service = service
        self._router = router
        self._metrics = metrics
        self.links = links
        self.mischief = mischief
        self.down = False
        """While it restarts: every client is cut off at once."""
        self._holding: set[asyncio.Future[None]] = set()

    def endpoints_changed(self) -> None:
        """Those that are held look again."""
        for waiting in self._holding:
            if not waiting.done():
                waiting.set_result(None)

    async def forward(
        self, through: Callable[[Backend], Awaitable[T]], own_error: Callable[[OwnError], T], body: bytes = b""
    ) -> T:
        """``through`` carries the request to a replica and raises ``ConnectionRefusedError`` when nothing of it was
        sent; it is never sent twice. Raises ``ConnectionResetError`` where the client's connection breaks by itself."""
        if self.down:
            raise LinkReset(towards_client=True)
        async with self.links.passing(CLIENTS):
            hashes = prefix_hashes(body) if self._router.prefixes is not None else ()
            return await self._forward(through, own_error, hashes, body)

    async def _forward(
        self,
        through: Callable[[Backend], Awaitable[T]],
        own_error: Callable[[OwnError], T],
        hashes: Sequence[int],
        body: bytes,
    ) -> T:
        refused: list[Backend] = []
        backend: Backend | OwnError | None
        self._metrics.in_flight += 1
        try:
            while len(refused) < ATTEMPTS:
                if self.picker is not None:
                    backend = await self._picked(self.picker, refused, body)
                else:
                    backend = await self._taken(refused, hashes)
                if backend is None and not refused and self.config.hold_s:
                    backend = await self._held(hashes)
                if backend is None:
                    break
                if isinstance(backend, OwnError):
                    return own_error(self.counted(backend))
                self._metrics.retries += bool(refused)
                try:
                    async with self.links.passing(PODS, f"node/{backend.node}"):
                        return await self.mischief.carried(through(backend))
                except ConnectionRefusedError:
                    refused.append(backend)
                finally:
                    backend.in_flight -= 1
                    self.queue.serve()
        finally:
            self._metrics.in_flight -= 1
        if refused:
            pods = ", ".join(b.pod for b in refused)
            error = OwnError(502, "BadGateway", f"connection refused by {pods}", refused[-1])
        else:
            error = OwnError(503, "ServiceUnavailable", f"service {self._service} has no ready endpoint")
        return own_error(self.counted(error))

    async def _picked(self, picker: Picker, refused: Collection[Backend], body: bytes) -> Backend | OwnError:
        """The best of those it names that has not refused; it counts on it from now on, as with ``_taken``."""
        answer = await picker.ask(PICKER_PATH, body)
        if isinstance(answer, Refused):
            return OwnError(answer.status, "EndpointPicker", answer.body or f"it answered {answer.status}")
        for place in answer.places:
            backend = backend_at(self._router.backends.values(), place)
            if backend is not None and backend not in refused:
                backend.in_flight += 1
                return backend
        told = ", ".join(f"{host}:{port}" for host, port in answer.places)
        return OwnError(503, "ServiceUnavailable", f"the endpoint picker chose {told}, where nobody takes requests")

    async def _held(self, hashes: Sequence[int]) -> Backend | OwnError | None:
        """The first replica that comes within ``hold_s``; None where none does."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self.config.hold_s
        self._metrics.held += 1
        try:
            while (left_s := until_s - loop.time()) > 0:
                waiting: asyncio.Future[None] = loop.create_future()
                self._holding.add(waiting)
                try:
                    await asyncio.wait([waiting], timeout=left_s)
                finally:
                    self._holding.discard(waiting)
                if (backend := await self._taken((), hashes)) is not None:
                    return backend
            return None
        finally:
            self._metrics.held -= 1

    async def _taken(self, refused: Collection[Backend], hashes: Sequence[int]) -> Backend | OwnError | None:
        """A replica on which the request counts from now on; None when there is none that may be asked."""
        if not len(self.queue) and (backend := self._reserve(refused, hashes)):
            return backend
        if not self._router.busy(refused):
            return None
        if self.queue.full:
            return OwnError(503, "ServiceUnavailable", f"{len(self.queue)} requests wait for service {self._service}")
        try:
            return await self.queue.turn(refused, hashes, self.config.queue_s)
        except TimeoutError:
            waited = f"no replica of service {self._service} had room within {self.config.queue_s:g} s"
            return OwnError(503, "ServiceUnavailable", waited)

    def _reserve(self, refused: Collection[Backend], hashes: Sequence[int]) -> Backend | None:
        backend = self._router.pick(refused, hashes)
        if backend is not None:
            backend.in_flight += 1
        return backend

    def too_late(self, backend: Backend) -> OwnError:
        message = f"{backend.pod} had not begun to answer within {self.config.answer_s:g} s"
        return self.counted(OwnError(504, "GatewayTimeout", message, backend))

    def counted(self, error: OwnError) -> OwnError:
        self._metrics.answered["", error.status] += 1
        return error

    def broke_before_answer(self, backend: Backend, why: object) -> OwnError:
        message = f"{backend.pod} closed the connection before it answered: {why}"
        return self.counted(OwnError(502, "BadGateway", message, backend))
