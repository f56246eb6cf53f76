"""One resource's way to the kubelet: it serves, registers, and does so again whenever the kubelet's socket is another.

A kubelet that starts deletes every socket in its folder, the plugin's own among them, and makes its own anew
(kubernetes v1.37 pkg/kubelet/cm/devicemanager/plugin/v1beta1/server.go).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc

from fakes.control.knobs import NEVER, Value
from fakes.device_plugin import api_pb2 as api
from fakes.device_plugin.resource import Resource
from fakes.device_plugin.service import DeviceService, Say, options

API_VERSION = "v1beta1"
KUBELET_SOCKET = "kubelet.sock"
LOOK_S = 0.2
REGISTER_WITHIN_S = 5.0
Identity = tuple[int, int]
"""Of a socket's file: inode, and when it last changed; an inode alone is used again."""


class Registered:
    """``run`` until cancelled."""

    def __init__(self, resource: Resource, folder: Path, node: str, say: Say) -> None:
        self.service = DeviceService(resource, node, say)
        self._resource = resource
        self._say = say
        self._kubelet = folder / KUBELET_SOCKET
        self._own = folder / resource.socket
        self._server: grpc.aio.Server | None = None
        self._with: Identity | None = None
        self._down = False
        self._deaf = False
        self._late_s: float | None = 0.0
        self._look = asyncio.Event()

    @property
    def registered(self) -> bool:
        """With the kubelet that is there now, as far as the plugin knows."""
        return self._server is not None and self._with is not None

    def turn(self, switch: str, value: Value) -> None:
        match switch:
            case "plugin":
                self._down = value is not None
            case "plugin_deaf":
                self._deaf = value is not None
            case "plugin_late":
                self._late_s = None if value == NEVER else float(value or 0)
            case _:
                self.service.turn(switch, value)
        self._look.set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        try:
            while True:
                self._look.clear()
                due = self._late_s is not None and loop.time() - started_s >= self._late_s
                if self._down:
                    await self._die()
                elif due or self._with is not None:
                    await self._follow()
                await self._wait()
        finally:
            await self._stop()
            self._own.unlink(missing_ok=True)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(LOOK_S):
                await self._look.wait()
        except TimeoutError:
            return

    async def _follow(self) -> None:
        """Registers with the kubelet that is there, unless that is done."""
        now = _identity(self._kubelet)
        if now is None or now == self._with:
            return
        if self._with is not None and self._deaf:
            return
        if self._server is not None and self._with is not None:
            self._say("kubelet_restarted")
        try:
            await self._serve()
            await self._register()
        except grpc.aio.AioRpcError as error:
            self._say("not_registered", error=f"{error.code().name}: {error.details()}")
            return
        except (OSError, RuntimeError) as error:  # the latter is gRPC's, for a socket that it cannot make
            self._say("not_registered", error=str(error))
            return
        self._with = now
        self._say("registered", socket=self._own.name)

    async def _serve(self) -> None:
        """Anew: whoever deleted the socket's file left a server that nobody can reach."""
        await self._stop()
        self._own.unlink(missing_ok=True)
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers((self.service.handlers(),))
        self._server.add_insecure_port(f"unix://{self._own}")
        await self._server.start()

    async def _register(self) -> None:
        async with grpc.aio.insecure_channel(f"unix://{self._kubelet}") as channel:
            register = channel.unary_unary(
                "/v1beta1.Registration/Register",
                request_serializer=api.RegisterRequest.SerializeToString,
                response_deserializer=api.Empty.FromString,
            )
            request = api.RegisterRequest(
                version=API_VERSION, endpoint=self._own.name, resource_name=self._resource.name, options=options()
            )
            await register(request, timeout=REGISTER_WITHIN_S)

    async def _die(self) -> None:
        """As when the process is killed: its connections end, whatever is under way in them."""
        if self._server is not None:
            await self._stop()
            self._say("down")
        self._with = None

    async def _stop(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            await server.stop(None)


def _identity(path: Path) -> Identity | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_ctime_ns
