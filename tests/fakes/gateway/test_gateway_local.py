"""The gateway without sockets: the same picks, refusals and errors as over HTTP, told to a client in the process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

import pytest
from replicas import NS, Fleet, endpoint, make_fleet, until

from fakes.clock import WallClock
from fakes.gateway.gateway import Gateway
from fakes.gateway.local import LocalEntry
from fakes.metrics.parse import parse
from fakes.metrics.source import LocalSource, ScrapeFailed
from fakes.timing import Timing
from fakes.vllm.flags import parse_flags
from fakes.vllm.local_door import HOST, Switchboard
from fakes.vllm.presets import PROFILES
from fakes.vllm.server import AbortForm, ModelServer

pytestmark = pytest.mark.looptime


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
        self, pod: str, words: str = "", *, loaded: bool = True, form: AbortForm = AbortForm.HANG
    ) -> ModelServer:
        flags = parse_flags(["--served-model-name", "m", *words.split()])
        server = ModelServer(
            flags, PROFILES["llama-8b-h100"], timing=Timing(10), rng=Random(1),
            wall=WallClock(datetime(2026, 11, 29, tzinfo=UTC)), abort_weights={form: 1}, door=self.switchboard.door,
        )  # fmt: skip
        address = server.bind()
        if loaded:
            await server.listen()
        await self.fleet.add(pod, address, f"node-of-{pod}")
        await until(lambda: pod in self.gateway.router.backends, pod)
        return server

    async def chat(self, client: Client, tokens: int = 20) -> None:
        message = {"role": "user", "content": "hello there"}
        body = {"model": "m", "messages": [message], "max_tokens": tokens, "ignore_eos": True, "stream": True}
        body["stream_options"] = {"include_usage": True}
        await self.entry.chat(json.dumps(body).encode(), "7-1", client)


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    fleet, switchboard = await make_fleet(), Switchboard()
    gateway = Gateway(fleet.kube, NS, "llm", Random(1))
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


async def test_a_stream_comes_whole_and_names_who_served_it() -> None:
    async with scene() as s:
        server, client = await s.add("llm-a"), Client()
        await s.chat(client, tokens=25)
        assert (client.status, client.served_by) == (200, ("llm-a", "node-of-llm-a"))
        assert (client.tokens, client.finish, client.usage) == (25, "length", (2, 25))
        assert server.ledger.entries["chatcmpl-7-1"].sent_tokens == 25
        assert s.gateway.metrics.answered == {("llm-a", 200): 1}
        assert s.gateway.metrics.in_flight == s.gateway.router.backends["llm-a"].in_flight == 0


async def test_nobody_there_is_the_gateways_own_503() -> None:
    async with scene() as s:
        client = Client()
        await s.chat(client)
        assert (client.status, client.served_by) == (503, ("", ""))
        assert client.said == "service llm has no ready endpoint"


async def test_a_refusal_goes_to_a_second_replica_and_two_are_a_502() -> None:
    async with scene() as s:
        await s.add("llm-a", loaded=False)
        alone = Client()
        await s.chat(alone)
        assert (alone.status, alone.said) == (502, "connection refused by llm-a")
        await s.add("llm-b")
        helped = Client()
        await s.chat(helped)
        assert (helped.status, helped.served_by[0]) == (200, "llm-b")


async def test_a_draining_server_ends_its_streams_and_answers_500_to_new_ones() -> None:
    async with scene() as s:
        server, old, new = await s.add("llm-a", "--shutdown-timeout 3600"), Client(), Client()
        call = await in_the_middle(s, old)
        server.terminate()
        await s.chat(new)
        assert (new.status, new.said) == (500, "cannot schedule new futures after shutdown")
        await call
        assert (old.tokens, old.finish) == (400, "length")
        assert await server.wait() == 0


async def test_a_killed_server_resets_its_streams_and_refuses_new_ones() -> None:
    async with scene() as s:
        server, old, new = await s.add("llm-a"), Client(), Client()
        call = await in_the_middle(s, old)
        server.kill()
        with pytest.raises(ConnectionResetError):
            await call
        assert s.gateway.metrics.cut == {"llm-a": 1}
        await s.chat(new)
        assert new.status == 502


@pytest.mark.parametrize("form", list(AbortForm))
async def test_a_server_that_aborts_ends_streams_in_its_three_ways(form: AbortForm) -> None:
    async with scene() as s:
        server, client = await s.add("llm-a", form=form), Client()
        call = await in_the_middle(s, client)
        server.terminate()
        if form is AbortForm.HANG:
            await asyncio.sleep(60)
            assert not call.done() and not client.finish
            call.cancel()
            await asyncio.wait([call])
        else:
            await call
        assert (client.finish, client.errors) == {
            AbortForm.HANG: ("", []),
            AbortForm.ERROR: ("", [("InternalServerError", 500)]),
            AbortForm.ABORT: ("abort", []),
        }[form]
        assert await server.wait() == 0


async def test_a_client_that_leaves_frees_its_slot() -> None:
    async with scene() as s:
        server, client = await s.add("llm-a"), Client()
        call = await in_the_middle(s, client)
        call.cancel()
        await asyncio.wait([call])
        assert (server.engine.in_flight, server.ledger.entries["chatcmpl-7-1"].finish) == (0, "left")
        assert s.gateway.metrics.client_left == {"llm-a": 1}


async def test_a_terminating_endpoint_gets_no_new_request() -> None:
    async with scene() as s:
        await s.add("llm-a")
        await s.fleet.set("llm-a", endpoint("llm-a", "n1", ready=False, terminating=True))
        await until(lambda: not s.gateway.router.backends["llm-a"].routable, "the endpoint's end")
        client = Client()
        await s.chat(client)
        assert client.status == 503


async def test_a_scrape_within_the_process_reads_what_the_text_says() -> None:
    async with scene() as s:
        await s.add("llm-a")
        await s.chat(Client())
        door = s.switchboard.connect((HOST, 1))
        text: dict[str, float] = {}
        for sample in parse(door._completions.metrics.text(), buckets=False):
            text[sample.name] = text.get(sample.name, 0.0) + sample.value
        assert len(text) > 60 and text["vllm:generation_tokens_total"] == 20
        assert door.metric_sums() == pytest.approx(text)
        assert await LocalSource(s.switchboard).sums((HOST, 1)) == door.metric_sums()
        with pytest.raises(ScrapeFailed, match="nobody listens"):
            await LocalSource(s.switchboard).sums((HOST, 2))
