"""The gateway without sockets: the same picks, refusals and errors as over HTTP, told to a client in the process."""

from __future__ import annotations

import asyncio

import pytest
from gateway_scene import Client, in_the_middle, scene
from replicas import endpoint
from seen import until

from fakes.metrics.parse import parse
from fakes.metrics.source import LocalSource, ScrapeFailed
from fakes.vllm.local_door import HOST
from fakes.vllm.server import AbortForm

pytestmark = pytest.mark.looptime


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
