"""The gateway's entry for clients in the same process: the same router and the same errors, without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fakes.gateway.forwarder import OwnError
from fakes.gateway.gateway import Gateway
from fakes.gateway.mischief import DoubtingClient, Nobody
from fakes.gateway.router import Backend
from fakes.vllm.local_door import LocalDoor, StreamClient, Switchboard

Head = Callable[[int], None]


class LocalEntry:
    def __init__(self, gateway: Gateway, switchboard: Switchboard) -> None:
        self._forwarder = gateway.forwarder
        self._router = gateway.router
        self._metrics = gateway.metrics
        self._switchboard = switchboard
        self._aside: set[asyncio.Future[None]] = set()

    async def chat(self, body: bytes, request_id: str, client: StreamClient) -> None:
        """Returns when the answer came to its proper end. Raises ``ConnectionResetError`` where a client would see a
        reset. A client that leaves cancels the call."""

        self._metrics.came(body)

        async def through(backend: Backend) -> None:
            await self._through(backend, body, request_id, client)

        await self._forwarder.forward(through, lambda error: self._own_error(error, client), body)

    def _own_error(self, error: OwnError, client: StreamClient) -> None:
        backend = error.backend
        client.head(error.status, backend.pod if backend else "", backend.node if backend else "")
        client.body(error.body())

    async def _through(self, backend: Backend, body: bytes, request_id: str, client: StreamClient) -> None:
        if backend.address is None:
            raise ConnectionRefusedError(f"{backend.pod} has no address any more")
        door, mischief = self._switchboard.connect(backend.address), self._forwarder.mischief
        if mischief.sends_twice:
            self._send_again(backend, body, request_id)
        client = mischief.client(client)

        begun = False

        def head(status: int) -> None:
            nonlocal begun
            begun = True
            self._metrics.answered[backend.pod, status] += 1
            client.head(status, backend.pod, backend.node)

        try:
            if mischief.retries():
                await self._retried(door, backend, body, request_id, client, head)
            elif answer_s := self._forwarder.config.answer_s:
                await _begun_within(door.chat(body, request_id, client, head), answer_s, lambda: begun)
            else:
                await door.chat(body, request_id, client, head)
        except TimeoutError:
            self._own_error(self._forwarder.too_late(backend), client)
        except ConnectionResetError as broken:
            if not begun:
                self._own_error(self._forwarder.broke_before_answer(backend, broken), client)
                return
            self._metrics.cut[backend.pod] += 1
            raise
        except asyncio.CancelledError:
            self._metrics.client_left[backend.pod] += 1
            raise

    # What planted bugs make of it.

    def _send_again(self, backend: Backend, body: bytes, request_id: str) -> None:
        """To another replica, whose answer nobody hears."""
        other = self._router.pick([backend])
        if other is not None and other.address is not None:
            chat = self._switchboard.connect(other.address).chat(body, request_id, Nobody(), lambda status: None)
            self._aside.add(task := asyncio.ensure_future(chat))
            task.add_done_callback(self._dropped)

    def _dropped(self, task: asyncio.Future[None]) -> None:
        self._aside.discard(task)
        if not task.cancelled():
            task.exception()  # a replica that ended under it

    async def _retried(
        self, door: LocalDoor, backend: Backend, body: bytes, request_id: str, client: StreamClient, head: Head
    ) -> None:
        """Gives the answer up in its middle, and passes on that of another replica from its beginning."""
        doubting = DoubtingClient(client)
        first = asyncio.ensure_future(door.chat(body, request_id, doubting, head))
        given_up = asyncio.ensure_future(doubting.given_up.wait())
        try:
            await asyncio.wait({first, given_up}, return_when=asyncio.FIRST_COMPLETED)
            other = self._router.pick([backend])
            if first.done() or other is None or other.address is None:
                return await first
            first.cancel()
            await self._switchboard.connect(other.address).chat(body, request_id, client, lambda status: None)
        finally:
            given_up.cancel()
            first.cancel()

    def metrics_text(self) -> str:
        return self._metrics.text(self._router, len(self._forwarder.queue))


async def _begun_within(work: Coroutine[Any, Any, None], seconds: float, begun: Callable[[], bool]) -> None:
    """Raises TimeoutError, and ends the work, when it has not begun in time."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done() and not begun():
            raise TimeoutError
        await task
    finally:
        task.cancel()
