"""The gateway over real sockets: what passes through, what it does when a replica fails."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from random import Random

import aiohttp
import pytest
from replicas import Fleet, closed_port, endpoint, gateway_for, make_fleet, raw_server
from seen import until

from fakes.clock import WallClock
from fakes.config import PlantedBug
from fakes.gateway import upstream
from fakes.timing import Timing
from fakes.vllm.flags import parse_flags
from fakes.vllm.presets import PROFILES
from fakes.vllm.server import ModelServer

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
HELLO = b"HTTP/1.1 200 OK\r\nx-from: replica\r\ncontent-length: 5\r\n\r\nhello"
CHAT = "/v1/chat/completions"


def body(tokens: int) -> dict[str, object]:
    messages = [{"role": "user", "content": "hello there"}]
    return {"model": "m", "messages": messages, "max_tokens": tokens, "ignore_eos": True, "stream": True}


async def add_model_server(fleet: Fleet, pod: str, node: str = "n1") -> ModelServer:
    flags = parse_flags(["--served-model-name", "m", "--max-num-seqs", "8", "--shutdown-timeout", "3600"])
    wall = WallClock(datetime(2026, 11, 29, tzinfo=UTC))
    server = ModelServer(flags, PROFILES["llama-8b-h100"], timing=Timing(100), rng=Random(1), wall=wall)
    address = server.bind()
    await server.listen()
    await fleet.add(pod, address, node)
    return server


async def say_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(HELLO)
    await writer.drain()


async def test_a_stream_passes_whole_with_the_pod_and_node_that_served_it() -> None:
    fleet = await make_fleet()
    server = await add_model_server(fleet, "llm-a", "node-7")
    async with gateway_for(fleet) as (gateway, url), aiohttp.ClientSession() as client:
        async with client.post(url + CHAT, json=body(25)) as response:
            text = await response.text()
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert (response.headers["x-serving-pod"], response.headers["x-serving-node"]) == ("llm-a", "node-7")
        assert text.count("data: ") == 1 + 25 + 1
        assert text.endswith("data: [DONE]\n\n")
        async with client.post(url + CHAT, json={}) as refused:
            assert (refused.status, (await refused.json())["error"]["param"]) == (400, "body.messages")
        assert gateway.metrics.answered == {("llm-a", 200): 1, ("llm-a", 400): 1}
        assert gateway.metrics.in_flight == gateway.router.backends["llm-a"].in_flight == 0
    server.kill()


async def test_headers_and_events_pass_before_the_answer_ends() -> None:
    go = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        await go.wait()
        writer.write(b"5\r\nfirst\r\n")
        await asyncio.Event().wait()

    fleet = await make_fleet()
    async with raw_server(slow) as address:
        await fleet.add("llm-a", address)
        async with (
            gateway_for(fleet) as (_, url),
            aiohttp.ClientSession() as client,
            client.get(f"{url}/x") as response,
        ):
            assert response.status == 200
            go.set()
            assert await response.content.readany() == b"first"


async def test_no_endpoint_is_503_and_a_new_one_is_used_at_once() -> None:
    fleet = await make_fleet()
    async with (
        raw_server(say_hello) as address,
        gateway_for(fleet) as (gateway, url),
        aiohttp.ClientSession() as client,
    ):
        async with client.get(f"{url}/x") as response:
            assert (response.status, (await response.json())["error"]["code"]) == (503, 503)
        await fleet.add("llm-a", address)
        await until(lambda: bool(gateway.router.backends), "the new endpoint")
        async with client.get(f"{url}/x") as response:
            assert (await response.text(), response.headers["x-from"]) == ("hello", "replica")
            assert response.content_length == 5


async def test_a_refused_connection_is_tried_once_more_elsewhere() -> None:
    fleet = await make_fleet()
    async with raw_server(say_hello) as address:
        await fleet.add("llm-a", closed_port())
        async with gateway_for(fleet) as (gateway, url), aiohttp.ClientSession() as client:
            async with client.get(f"{url}/x") as response:
                assert (response.status, response.headers["x-serving-pod"]) == (502, "llm-a")
                assert "refused" in (await response.json())["error"]["message"]
            assert gateway.metrics.retries == 0
            await fleet.add("llm-b", address)
            await fleet.add("llm-c", closed_port())
            await until(lambda: len(gateway.router.backends) == 3, "the new endpoints")
            gateway.router.backends["llm-c"].in_flight = 1  # so that a and b come first
            gateway.router.backends["llm-b"].last_used = 99
            async with client.get(f"{url}/x") as response:
                assert (response.status, response.headers["x-serving-pod"]) == (200, "llm-b")
            assert gateway.metrics.retries == 1


async def test_a_request_that_was_sent_is_never_sent_again() -> None:
    calls = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(1)

    fleet = await make_fleet()
    async with raw_server(hang_up) as first, raw_server(hang_up) as second:
        await fleet.add("llm-a", first)
        await fleet.add("llm-b", second)
        async with (
            gateway_for(fleet) as (_, url),
            aiohttp.ClientSession() as client,
            client.post(f"{url}/x", data=b"once") as response,
        ):
            assert response.status == 502
            assert "before it answered" in (await response.json())["error"]["message"]
    assert calls == [1]


@pytest.mark.parametrize("framing", ["chunked", "length"])
async def test_an_answer_cut_upstream_is_a_reset_for_the_client(framing: str) -> None:
    head = HEAD if framing == "chunked" else b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n"
    first = b"4\r\nwhol\r\n" if framing == "chunked" else b"whol"
    cut = asyncio.Event()

    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head + first)
        await cut.wait()  # then a clean FIN, as the end of a killed process looks

    fleet = await make_fleet()
    async with raw_server(break_off) as address:
        await fleet.add("llm-a", address)
        async with gateway_for(fleet) as (gateway, url):
            port = int(url.rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n")
            assert await reader.readuntil(b"whol") != b""
            cut.set()
            with pytest.raises(ConnectionResetError):
                await asyncio.wait_for(reader.read(), 20)
            writer.close()
            assert gateway.metrics.cut == {"llm-a": 1}


async def test_a_client_that_leaves_frees_the_slot_upstream() -> None:
    fleet = await make_fleet()
    server = await add_model_server(fleet, "llm-a")
    async with gateway_for(fleet) as (gateway, url):
        async with aiohttp.ClientSession() as client, client.post(url + CHAT, json=body(30_000)) as response:
            await response.content.readany()
            assert gateway.router.backends["llm-a"].in_flight == 1
        await until(lambda: server.engine.in_flight == 0, "the slot is free")
        await until(lambda: gateway.metrics.client_left == {"llm-a": 1}, "it is counted")
        assert gateway.router.backends["llm-a"].in_flight == 0
    server.kill()


async def test_a_client_that_leaves_in_silence_is_noticed_too() -> None:
    left = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        left.set()

    fleet = await make_fleet()
    async with raw_server(silent) as address:
        await fleet.add("llm-a", address)
        async with gateway_for(fleet) as (_, url):
            async with aiohttp.ClientSession() as client:
                waiting = asyncio.create_task(client.get(f"{url}/x"))
                await asyncio.sleep(0.02)
                waiting.cancel()
                await asyncio.wait([waiting])
            async with asyncio.timeout(20):
                await left.wait()


async def test_a_terminating_pod_gets_nothing_new_and_finishes_what_it_has() -> None:
    fleet = await make_fleet()
    old, new = await add_model_server(fleet, "llm-a"), await add_model_server(fleet, "llm-b", "n2")
    async with gateway_for(fleet) as (gateway, url), aiohttp.ClientSession() as client:
        gateway.router.backends["llm-b"].last_used = 99
        async with client.post(url + CHAT, json=body(60)) as response:
            assert response.headers["x-serving-pod"] == "llm-a"
            await fleet.set("llm-a", endpoint("llm-a", "n1", ready=False, terminating=True))
            await until(lambda: not gateway.router.backends["llm-a"].routable, "the endpoint's new state")
            old.terminate()
            for _ in range(4):
                async with client.post(url + CHAT, json=body(1)) as other:
                    assert (other.status, other.headers["x-serving-pod"]) == (200, "llm-b")
            await fleet.set("llm-a", None)
            await until(lambda: "llm-a" not in gateway.router.backends, "the endpoint is gone")
            assert (await response.text()).endswith("data: [DONE]\n\n")
        assert await old.wait() == 0
    new.kill()


async def test_planted_a_terminating_pod_goes_on_getting_requests() -> None:
    fleet = await make_fleet()
    server = await add_model_server(fleet, "llm-a")
    bug = PlantedBug.GATEWAY_ROUTES_TO_TERMINATING
    async with gateway_for(fleet, bug) as (gateway, url), aiohttp.ClientSession() as client:
        server.terminate()
        await fleet.set("llm-a", endpoint("llm-a", "n1", ready=False, terminating=True))
        async with client.post(url + CHAT, json=body(1)) as response:
            assert response.status in (500, 502)
            assert gateway.router.backends["llm-a"].routable
    server.kill()


async def test_connections_are_kept_but_not_past_their_idle_time(monkeypatch: pytest.MonkeyPatch) -> None:
    connections = []

    async def keep_alive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        while True:
            writer.write(HELLO)
            await reader.readuntil(b"\r\n\r\n")

    fleet = await make_fleet()
    async with raw_server(keep_alive) as address:
        await fleet.add("llm-a", address)
        async with gateway_for(fleet) as (_, url), aiohttp.ClientSession() as client:
            for _ in range(3):
                async with client.get(f"{url}/x") as response:
                    assert await response.text() == "hello"
            assert len(connections) == 1
            monkeypatch.setattr(upstream, "IDLE_MAX_S", 0.0)
            async with client.get(f"{url}/x") as response:
                assert await response.text() == "hello"
            assert len(connections) == 2


@pytest.mark.parametrize(
    ("method", "answer", "text"),
    [
        pytest.param("GET", b"HTTP/1.1 200 OK\r\n\r\nto the end", "to the end", id="until-the-connection-closes"),
        pytest.param("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n", "", id="head"),
        pytest.param("GET", b"HTTP/1.1 100 Continue\r\n\r\n" + HELLO, "hello", id="continue-first"),
        pytest.param("GET", b"HTTP/1.1 204 No Content\r\n\r\n", "", id="no-content"),
    ],
)
async def test_other_ways_to_end_an_answer(method: str, answer: bytes, text: str) -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    fleet = await make_fleet()
    async with raw_server(reply) as address:
        await fleet.add("llm-a", address)
        async with (
            gateway_for(fleet) as (gateway, url),
            aiohttp.ClientSession() as client,
            client.request(method, f"{url}/x") as response,
        ):
            assert await response.text() == text
            assert gateway.metrics.cut == {}


async def test_what_is_not_http_is_502() -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail ready\r\n")
        await reader.read()

    fleet = await make_fleet()
    async with raw_server(babble) as address:
        await fleet.add("llm-a", address)
        async with (
            gateway_for(fleet) as (_, url),
            aiohttp.ClientSession() as client,
            client.get(f"{url}/x") as response,
        ):
            assert response.status == 502
            assert "not HTTP" in (await response.json())["error"]["message"]


async def test_its_own_routes() -> None:
    fleet = await make_fleet()
    async with raw_server(say_hello) as address:
        await fleet.add("llm-a", address)
        async with gateway_for(fleet) as (_, url), aiohttp.ClientSession() as client:
            async with client.get(f"{url}/x") as response:
                await response.read()
            async with client.get(f"{url}/health") as response:
                assert await response.json() == {"status": "ok", "endpoints": 1}
            async with client.get(f"{url}/metrics") as response:
                text = await response.text()
    assert 'gateway_requests_total{code="200",pod="llm-a"} 1.0' in text
    assert 'gateway_pod_routable{node="n1",pod="llm-a"} 1.0' in text
    assert "gateway_requests_in_flight 0.0" in text
