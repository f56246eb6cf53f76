"""The gRPC service ``v1beta1.DevicePlugin`` of one resource, and what is wrong with it.

Written after kubernetes v1.37 k8s.io/kubelet pkg/apis/deviceplugin/v1beta1 (api.proto, constants.go).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from fakes.control.knobs import Value
from fakes.device_plugin import api_pb2 as api
from fakes.device_plugin.resource import Resource, preferred

HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"
Say = Callable[..., None]
"""Called with what happened, and its details by name."""


class DeviceService:
    """``say`` hears of every call. The switches are its attributes; call ``changed`` after turning one."""

    def __init__(self, resource: Resource, node: str, say: Say) -> None:
        self.resource = resource
        self._node = node
        self._say = say
        self._news = asyncio.Event()
        self.unhealthy = 0
        self.count: int | None = None
        self.allocate_error: str | None = None
        self.allocate_s = 0.0
        self.may_answer = asyncio.Event()
        """Cleared, no Allocate comes back."""
        self.may_answer.set()

    def turn(self, switch: str, value: Value) -> None:
        match switch:
            case "unhealthy":
                self.unhealthy = value or 0
            case "count":
                self.count = value
            case "allocate_error":
                self.allocate_error = value
            case "allocate_s":
                self.allocate_s = float(value or 0)
            case "allocate_hangs":
                (self.may_answer.clear if value else self.may_answer.set)()
        self._news.set()
        self._news = asyncio.Event()

    def devices(self) -> dict[str, str]:
        """Health by id, as the next list says it."""
        ids = self.resource.ids(self._node, self.count)
        return {id: UNHEALTHY if index < self.unhealthy else HEALTHY for index, id in enumerate(ids)}

    def handlers(self) -> Any:
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "GetDevicePluginOptions": unary(
                self._options, api.Empty.FromString, api.DevicePluginOptions.SerializeToString
            ),
            "ListAndWatch": stream(
                self._list_and_watch, api.Empty.FromString, api.ListAndWatchResponse.SerializeToString
            ),
            "GetPreferredAllocation": unary(
                self._preferred, api.PreferredAllocationRequest.FromString,
                api.PreferredAllocationResponse.SerializeToString,
            ),
            "Allocate": unary(
                self._allocate, api.AllocateRequest.FromString, api.AllocateResponse.SerializeToString
            ),
            "PreStartContainer": unary(
                self._pre_start, api.PreStartContainerRequest.FromString,
                api.PreStartContainerResponse.SerializeToString,
            ),
        }  # fmt: skip
        return grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", methods)

    async def _options(self, request: api.Empty, context: Any) -> api.DevicePluginOptions:
        return options()

    async def _list_and_watch(self, request: api.Empty, context: Any) -> AsyncIterator[api.ListAndWatchResponse]:
        """The whole list at once, and again whenever it is another one."""
        sent: dict[str, str] | None = None
        while True:
            news = self._news
            if (now := self.devices()) != sent:
                sent = now
                self._say("listed", devices=len(now), unhealthy=sum(h == UNHEALTHY for h in now.values()))
                yield api.ListAndWatchResponse(devices=[self._device(*d) for d in enumerate(now.items())])
            await news.wait()

    def _device(self, index: int, device: tuple[str, str]) -> api.Device:
        id, health = device
        topology = api.TopologyInfo(nodes=[api.NUMANode(ID=self.resource.numa_node(index))])
        return api.Device(ID=id, health=health, topology=topology)

    async def _preferred(
        self, request: api.PreferredAllocationRequest, context: Any
    ) -> api.PreferredAllocationResponse:
        ids = list(self.devices())
        numa = {id: self.resource.numa_node(index) for index, id in enumerate(ids)}
        answers = [
            preferred(r.available_deviceIDs, list(r.must_include_deviceIDs), r.allocation_size, numa, ids)
            for r in request.container_requests
        ]
        return api.PreferredAllocationResponse(
            container_responses=[api.ContainerPreferredAllocationResponse(deviceIDs=ids) for ids in answers]
        )

    async def _allocate(self, request: api.AllocateRequest, context: Any) -> api.AllocateResponse:
        wanted = [list(container.devices_ids) for container in request.container_requests]
        self._say("allocate", ids=wanted)
        await self.may_answer.wait()
        if self.allocate_s:
            await asyncio.sleep(self.allocate_s)
        if self.allocate_error is not None:
            await context.abort(grpc.StatusCode.INTERNAL, self.allocate_error)
        return api.AllocateResponse(container_responses=[self._given(ids) for ids in wanted])

    def _given(self, ids: list[str]) -> api.ContainerAllocateResponse:
        """What a container sees of its devices: names, and files that are there and hold nothing."""
        index = {id: n for n, id in enumerate(self.devices())}
        files = [self.resource.device_file(index.get(id, n)) for n, id in enumerate(ids)]
        return api.ContainerAllocateResponse(
            envs={"NVIDIA_VISIBLE_DEVICES": ",".join(ids)},
            devices=[api.DeviceSpec(container_path=f, host_path="/dev/null", permissions="rw") for f in files],
        )

    async def _pre_start(self, request: api.PreStartContainerRequest, context: Any) -> api.PreStartContainerResponse:
        return api.PreStartContainerResponse()


def options() -> api.DevicePluginOptions:
    return api.DevicePluginOptions(pre_start_required=False, get_preferred_allocation_available=True)
