"""Replicas behind a gateway: objects in a real store, and servers that answer as a test wants."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from aiohttp import web
from seen import until

from fakes.clock import WallClock
from fakes.config import PlantedBug
from fakes.gateway.choosing import Picker
from fakes.gateway.gateway import Gateway
from fakes.kube import LocalKube, Store
from fakes.nodes.address import LISTEN_ANNOTATION
from harness.kube.port import ENDPOINT_SLICE, NAMESPACE, POD, Json, PatchType

NS = "inference"
Address = tuple[str, int]
Stream = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def endpoint(pod: str, node: str, *, ready: bool = True, terminating: bool = False) -> Json:
    return {
        "addresses": ["10.244.0.1"],
        "conditions": {"ready": ready, "serving": ready or terminating, "terminating": terminating},
        "nodeName": node,
        "targetRef": {"kind": "Pod", "name": pod, "namespace": NS},
    }


@dataclass
class Fleet:
    """Pods and one EndpointSlice of the service ``llm``."""

    kube: LocalKube
    endpoints: dict[str, Json] = field(default_factory=dict)

    async def add(self, pod: str, address: Address, node: str = "n1", *, ready: bool = True) -> None:
        meta = {"name": pod, "namespace": NS, "annotations": {LISTEN_ANNOTATION: f"{address[0]}:{address[1]}"}}
        spec = {"nodeName": node, "containers": [{"name": "vllm", "image": "vllm"}]}
        await self.kube.create(POD, {"metadata": meta, "spec": spec})
        await self.set(pod, endpoint(pod, node, ready=ready))

    async def set(self, pod: str, state: Json | None) -> None:
        if state is None:
            del self.endpoints[pod]
        else:
            self.endpoints[pod] = state
        endpoints = list(self.endpoints.values())
        await self.kube.patch(
            ENDPOINT_SLICE,
            "llm-1",
            [{"op": "replace", "path": "/endpoints", "value": endpoints}],
            NS,
            type=PatchType.JSON,
        )


async def make_fleet() -> Fleet:
    kube = LocalKube(Store(WallClock(datetime(2026, 11, 29, tzinfo=UTC)), Random(1)), "test")
    await kube.create(NAMESPACE, {"metadata": {"name": NS}})
    labels = {"kubernetes.io/service-name": "llm"}
    meta = {"name": "llm-1", "namespace": NS, "labels": labels}
    await kube.create(ENDPOINT_SLICE, {"metadata": meta, "addressType": "IPv4", "endpoints": [], "ports": []})
    return Fleet(kube)


@asynccontextmanager
async def gateway_for(
    fleet: Fleet, *bugs: PlantedBug, picker: Picker | None = None
) -> AsyncIterator[tuple[Gateway, str]]:
    gateway = Gateway(fleet.kube, NS, "llm", Random(1), frozenset(bugs), picker=picker)
    watching = asyncio.create_task(gateway.run())
    runner = gateway.runner()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0]
    try:
        await until(lambda: len(gateway.router.backends) == len(fleet.endpoints), "all endpoints")
        yield gateway, f"http://{host}:{port}"
    finally:
        watching.cancel()
        await asyncio.wait([watching])
        await runner.cleanup()


@asynccontextmanager
async def raw_server(stream: Stream) -> AsyncIterator[Address]:
    """``stream`` gets the connection once a request's head has been read."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await stream(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        address: Address = server.sockets[0].getsockname()
        yield address
    finally:
        server.close()


def closed_port() -> Address:
    """An address that refuses: bound once, never listened on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address: Address = s.getsockname()
    return address
