"""The gateway's entry for clients in the same process: the same router and the same errors, without sockets."""

from __future__ import annotations

import asyncio

from fakes.gateway.forwarder import OwnError
from fakes.gateway.gateway import Gateway
from fakes.gateway.router import Backend
from fakes.vllm.local_door import StreamClient, Switchboard


class LocalEntry:
    def __init__(self, gateway: Gateway, switchboard: Switchboard) -> None:
        self._forwarder = gateway.forwarder
        self._router = gateway.router
        self._metrics = gateway.metrics
        self._switchboard = switchboard

    async def chat(self, body: bytes, request_id: str, client: StreamClient) -> None:
        """Returns when the answer came to its proper end. Raises ``ConnectionResetError`` where a client would see a
        reset. A client that leaves cancels the call."""

        async def through(backend: Backend) -> None:
            await self._through(backend, body, request_id, client)

        await self._forwarder.forward(through, lambda error: self._own_error(error, client))

    def _own_error(self, error: OwnError, client: StreamClient) -> None:
        backend = error.backend
        client.head(error.status, backend.pod if backend else "", backend.node if backend else "")
        client.body(error.body())

    async def _through(self, backend: Backend, body: bytes, request_id: str, client: StreamClient) -> None:
        if backend.address is None:
            raise ConnectionRefusedError(f"{backend.pod} has no address any more")
        door = self._switchboard.connect(backend.address)

        begun = False

        def head(status: int) -> None:
            nonlocal begun
            begun = True
            self._metrics.answered[backend.pod, status] += 1
            client.head(status, backend.pod, backend.node)

        try:
            await door.chat(body, request_id, client, head)
        except ConnectionResetError as broken:
            if not begun:
                self._own_error(self._forwarder.broke_before_answer(backend, broken), client)
                return
            self._metrics.cut[backend.pod] += 1
            raise
        except asyncio.CancelledError:
            self._metrics.client_left[backend.pod] += 1
            raise

    def metrics_text(self) -> str:
        return self._metrics.text(self._router)
