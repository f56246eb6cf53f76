"""The HTTP port of a model server."""

from __future__ import annotations

import asyncio
import socket

from aiohttp import web

from fakes.vllm.api import Api
from fakes.vllm.completions import Completions

KEEP_ALIVE_S = 5.0
BACKLOG = 2048


class HttpDoor:
    def __init__(self, completions: Completions) -> None:
        self._completions = completions
        self._socket: socket.socket | None = None
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self._cleanup: asyncio.Task[None] | None = None
        self._shut = False

    def bind(self, host: str, port: int) -> tuple[str, int]:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if port:
            # Not for a port that the system picks: another socket with this option could get the same one before we
            # listen.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((host, port))
        address: tuple[str, int] = self._socket.getsockname()
        return address

    async def open(self) -> bool:
        self._runner = web.AppRunner(
            Api(self._completions).app(),
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=KEEP_ALIVE_S,
            shutdown_timeout=0.1,
        )
        await self._runner.setup()
        if self._shut or self._socket is None:
            await self._runner.cleanup()  # killed meanwhile
            return False
        assert self._runner.server is not None
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._runner.server, sock=self._socket, backlog=BACKLOG)
        return True

    def shut(self) -> None:
        self._shut = True
        if self._listener is not None:
            self._listener.close()
        elif self._socket is not None:
            self._socket.close()
        if self._runner is not None and self._runner.server is not None:
            self._runner.server.pre_shutdown()

    def cut(self) -> None:
        if self._runner is None:
            return
        if self._runner.server is not None:
            for connection in self._runner.server.connections:
                if connection.transport is not None:
                    connection.transport.abort()
        self._cleanup = asyncio.get_running_loop().create_task(self._runner.cleanup())
