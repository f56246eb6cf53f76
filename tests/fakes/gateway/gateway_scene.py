"""A gateway without sockets, its replicas, and a client that writes down what it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from replicas import NS, Fleet, make_fleet
from seen import until

from fakes.clock import WallClock
from fakes.config import GatewayConfig, PlantedBug
from fakes.gateway.gateway import AT_ONCE, Gateway
from fakes.gateway.local import LocalEntry
from fakes.timing import Timing
from fakes.vllm.flags import parse_flags
from fakes.vllm.local_door import Switchboard
from fakes.vllm.presets import PROFILES
from fakes.vllm.server import AbortForm, ModelServer


@dataclass
class Client:
    status: int = 0
    served_by: tuple[str, str] = ("", "")
    said: str = ""
    tokens: int = 0
    finish: str = ""
    usage: tuple[int, int] | None = None
    errors: list[tuple[str, int]] = field(default_factory=list)

    def head(self, status: int, pod: str, node: str) -> None:
        self.status, self.served_by = status, (pod, node)

    def body(self, body: bytes) -> None:
        self.said = str(json.loads(body)["error"]["message"])

    def token(self) -> None:
        self.tokens += 1

    def last(self, finish: str, *, with_text: bool, usage: tuple[int, int] | None) -> None:
        self.tokens += with_text
        self.finish, self.usage = finish, usage

    def error(self, message: str, type: str, status: int) -> None:
        self.errors.append((type, status))


class Scene:
    def __init__(self, fleet: Fleet, gateway: Gateway, switchboard: Switchboard) -> None:
        self.fleet = fleet
        self.gateway = gateway
        self.switchboard = switchboard
        self.entry = LocalEntry(gateway, switchboard)

    async def add(
        self,
        pod: str,
        words: str = "",
        *,
        loaded: bool = True,
        form: AbortForm = AbortForm.HANG,
        ready: bool = True,
    ) -> ModelServer:
        flags = parse_flags(["--served-model-name", "m", *words.split()])
        server = ModelServer(
            flags, PROFILES["llama-8b-h100"], timing=Timing(10), rng=Random(1),
            wall=WallClock(datetime(2026, 11, 29, tzinfo=UTC)), abort_weights={form: 1}, door=self.switchboard.door,
        )  # fmt: skip
        address = server.bind()
        if loaded:
            await server.listen()
        await self.fleet.add(pod, address, f"node-of-{pod}", ready=ready)
        await until(lambda: pod in self.gateway.router.backends, pod)
        return server

    async def chat(self, client: Client, tokens: int = 20, content: str = "hello there") -> None:
        message = {"role": "user", "content": content}
        body = {"model": "m", "messages": [message], "max_tokens": tokens, "ignore_eos": True, "stream": True}
        body["stream_options"] = {"include_usage": True}
        await self.entry.chat(json.dumps(body).encode(), "7-1", client)


@asynccontextmanager
async def scene(config: GatewayConfig = AT_ONCE, bugs: Collection[PlantedBug] = ()) -> AsyncIterator[Scene]:
    fleet, switchboard = await make_fleet(), Switchboard()
    gateway = Gateway(fleet.kube, NS, "llm", Random(1), bugs, config)
    watching = asyncio.create_task(gateway.run())
    try:
        yield Scene(fleet, gateway, switchboard)
    finally:
        watching.cancel()
        await asyncio.wait([watching])


async def in_the_middle(scene: Scene, client: Client, tokens: int = 400) -> asyncio.Task[None]:
    call = asyncio.create_task(scene.chat(client, tokens))
    while client.tokens < 3:
        await asyncio.sleep(0.01)
    return call
