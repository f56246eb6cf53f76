"""What a kubelet does with a device plugin, over the real sockets: it takes registrations, and calls back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from seen import until

from fakes.device_plugin import api_pb2 as api
from fakes.device_plugin.plugin import Plugin
from fakes.device_plugin.resource import read_resources

WITHIN_S = 20.0


class KubeletSide:
    """``start`` is a kubelet's: every socket in the folder goes, then its own comes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registered: list[api.RegisterRequest] = []
        self.refuse = False
        self._server: Any = None

    async def start(self) -> None:
        for socket in self.folder.glob("*.sock"):
            socket.unlink()
        register = grpc.unary_unary_rpc_method_handler(
            self._register, api.RegisterRequest.FromString, api.Empty.SerializeToString
        )
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v1beta1.Registration", {"Register": register}),)
        )
        self._server.add_insecure_port(f"unix://{self.folder / 'kubelet.sock'}")
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(None)

    async def _register(self, request: api.RegisterRequest, context: Any) -> api.Empty:
        if self.refuse:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        self.registered.append(request)
        return api.Empty()

    async def has_registered(self, times: int, resource: str = "nvidia.com/gpu") -> api.RegisterRequest:
        def of() -> list[api.RegisterRequest]:
            return [r for r in self.registered if r.resource_name == resource]

        await until(lambda: len(of()) >= times)
        return of()[times - 1]


class Caller:
    """The kubelet's connection to one plugin's socket."""

    def __init__(self, socket: Path) -> None:
        self.channel = grpc.aio.insecure_channel(f"unix://{socket}")

    async def options(self) -> api.DevicePluginOptions:
        return await self._call("GetDevicePluginOptions", api.Empty(), api.DevicePluginOptions)

    async def allocate(self, *ids: str) -> api.ContainerAllocateResponse:
        request = api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=ids)])
        return (await self._call("Allocate", request, api.AllocateResponse)).container_responses[0]

    async def prefer(self, available: Sequence[str], must: Sequence[str], size: int) -> list[str]:
        one = api.ContainerPreferredAllocationRequest(
            available_deviceIDs=available, must_include_deviceIDs=must, allocation_size=size
        )
        request = api.PreferredAllocationRequest(container_requests=[one])
        answer = await self._call("GetPreferredAllocation", request, api.PreferredAllocationResponse)
        return list(answer.container_responses[0].deviceIDs)

    async def pre_start(self) -> api.PreStartContainerResponse:
        return await self._call("PreStartContainer", api.PreStartContainerRequest(), api.PreStartContainerResponse)

    async def _call(self, method: str, request: Any, answer: Any) -> Any:
        call = self.channel.unary_unary(
            f"/v1beta1.DevicePlugin/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        return await call(request, timeout=WITHIN_S)


class Lists:
    """What ListAndWatch has sent: health by device, one for each list. ``error`` is how the stream ended."""

    def __init__(self, caller: Caller) -> None:
        self.seen: list[dict[str, str]] = []
        self.error: grpc.aio.AioRpcError | None = None
        self._task = asyncio.create_task(self._listen(caller))

    async def _listen(self, caller: Caller) -> None:
        watch = caller.channel.unary_stream(
            "/v1beta1.DevicePlugin/ListAndWatch",
            request_serializer=api.Empty.SerializeToString,
            response_deserializer=api.ListAndWatchResponse.FromString,
        )
        try:
            async for answer in watch(api.Empty()):
                self.seen.append({device.ID: device.health for device in answer.devices})
        except grpc.aio.AioRpcError as error:
            self.error = error

    async def nth(self, number: int) -> dict[str, str]:
        await until(lambda: len(self.seen) >= number)
        return self.seen[number - 1]

    async def ended(self) -> None:
        await until(lambda: self.error is not None)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@asynccontextmanager
async def calling(folder: Path, request: api.RegisterRequest) -> AsyncIterator[tuple[Caller, Lists]]:
    caller = Caller(folder / request.endpoint)
    lists = Lists(caller)
    try:
        yield caller, lists
    finally:
        await lists.close()
        await caller.channel.close()


class Running:
    """A plugin under way, and what it said."""

    def __init__(self, folder: Path, resources: str) -> None:
        self.said: list[dict[str, Any]] = []
        self.plugin = Plugin(read_resources([resources]), folder, "node-a", self._hear)

    def _hear(self, what: str, **details: Any) -> None:
        self.said.append({"event": what, **details})

    def events(self, what: str) -> list[dict[str, Any]]:
        return [said for said in self.said if said["event"] == what]

    @asynccontextmanager
    async def go(self) -> AsyncIterator[Plugin]:
        task = asyncio.create_task(self.plugin.run())
        try:
            yield self.plugin
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
