"""The machines' way to the API server, which listens in another network: connections are carried over, byte by byte.

A machine can be cut off here: its connections stay, and nothing comes through any more, as behind a firewall that
swallows packets.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from harness.targets.node.namespaces import within

_CHUNK = 65536


class ApiDoor:
    """``home`` is the network in which the API server listens on 127.0.0.1:``port``."""

    def __init__(self, home: int, port: int) -> None:
        self._home = home
        self._port = port
        self._open: dict[str, asyncio.Event] = {}
        self._carrying: set[asyncio.Task[None]] = set()

    def cut_off(self, address: str, cut: bool) -> None:
        """What comes from ``address`` does not come through, and gets no answer."""
        event = self._of(address)
        if cut:
            event.clear()
        else:
            event.set()

    @asynccontextmanager
    async def standing(self, addresses: Collection[str]) -> AsyncIterator[None]:
        """Listens at each of ``addresses``, on the API server's own port."""
        servers = [await asyncio.start_server(self._carry, address, self._port) for address in addresses]
        try:
            yield
        finally:
            for server in servers:
                server.close()
            for task in list(self._carrying):
                task.cancel()

    def _of(self, address: str) -> asyncio.Event:
        if address not in self._open:
            self._open[address] = asyncio.Event()
            self._open[address].set()
        return self._open[address]

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._carrying.add(task)
        try:
            may_pass = self._of(str(writer.get_extra_info("peername")[0]))
            await may_pass.wait()
            there = within(self._home, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            there.setblocking(False)
            try:
                await asyncio.get_running_loop().sock_connect(there, ("127.0.0.1", self._port))
            except OSError:
                there.close()
                return
            answers, asks = await asyncio.open_connection(sock=there)
            await asyncio.gather(_pass_on(reader, asks, may_pass), _pass_on(answers, writer, may_pass))
        except asyncio.CancelledError:
            return  # nobody waits for it
        finally:
            self._carrying.discard(task)
            writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may_pass: asyncio.Event) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(_CHUNK):
            await may_pass.wait()
            writer.write(data)
            await writer.drain()
    writer.close()
