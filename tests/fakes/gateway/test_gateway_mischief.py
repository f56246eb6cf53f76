"""Each thing that a gateway can do wrong on purpose, as a client and the replicas see it."""

from __future__ import annotations

import asyncio

import pytest
from gateway_scene import Client, in_the_middle, scene

from fakes.config import PlantedBug
from fakes.gateway.gateway import AT_ONCE
from fakes.gateway.mischief import RETRY_AFTER

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(("bugs", "cut"), [((), False), ((PlantedBug.GATEWAY_CUTS_ALL_ON_CHANGE,), True)])
async def test_an_endpoint_that_leaves_cuts_the_others_streams(bugs: tuple[PlantedBug, ...], cut: bool) -> None:
    async with scene(AT_ONCE, bugs) as s:
        await s.add("llm-a")
        client = Client()
        call = await in_the_middle(s, client, 300)
        await s.add("llm-b")
        await s.fleet.set("llm-b", None)
        await asyncio.wait([call])
        assert isinstance(call.exception(), ConnectionResetError) is cut
        assert (client.tokens < 300) is cut


@pytest.mark.parametrize(("bugs", "cut"), [((), False), ((PlantedBug.GATEWAY_CUTS_LONG_ANSWERS,), True)])
async def test_a_long_answer_is_cut(bugs: tuple[PlantedBug, ...], cut: bool) -> None:
    async with scene(AT_ONCE, bugs) as s:
        await s.add("llm-a")
        client = Client()
        call = asyncio.create_task(s.chat(client, 400))
        await asyncio.wait([call])
        assert isinstance(call.exception(), ConnectionResetError) is cut


async def test_an_answer_is_asked_for_again_in_its_middle_and_its_beginning_comes_twice() -> None:
    async with scene(AT_ONCE, (PlantedBug.GATEWAY_RETRIES_MID_STREAM,)) as s:
        for pod in ("llm-a", "llm-b"):
            await s.add(pod)
        clients = [Client() for _ in range(40)]
        for client in clients:
            await s.chat(client, 25)
        assert {c.tokens for c in clients} == {25, 25 + RETRY_AFTER}


async def test_a_request_goes_to_two_replicas() -> None:
    async with scene(AT_ONCE, (PlantedBug.GATEWAY_SENDS_TWICE,)) as s:
        servers = [await s.add(pod) for pod in ("llm-a", "llm-b")]
        await s.chat(Client(), 25)
        await asyncio.sleep(1)
        assert [list(server.ledger.entries) for server in servers] == [["chatcmpl-7-1"]] * 2


@pytest.mark.parametrize(
    ("bug", "tokens"), [(PlantedBug.GATEWAY_DROPS_TOKENS, 98), (PlantedBug.GATEWAY_REPEATS_TOKENS, 102)]
)
async def test_tokens_get_lost_or_come_twice(bug: PlantedBug, tokens: int) -> None:
    async with scene(AT_ONCE, (bug,)) as s:
        await s.add("llm-a")
        client = Client()
        await s.chat(client, 100)
        assert client.tokens == tokens
