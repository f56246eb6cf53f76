"""One server over real sockets: how it starts, serves, and ends."""

from __future__ import annotations

import asyncio
import json

import pytest
from raw_client import Exchange, chat_body, get, post
from seen import until
from serving_alone import Address, refused, serving

from fakes.metrics.parse import parse
from fakes.vllm.flags import FlagError, parse_flags
from fakes.vllm.presets import PROFILES
from fakes.vllm.server import AbortForm, engine_limits

HOUR = "--shutdown-timeout 3600"


def error_message(body: bytes) -> str:
    return str(json.loads(body)["error"]["message"])


async def test_headers_at_once_and_the_first_event_only_with_the_first_token() -> None:
    async with serving("--max-num-seqs 1") as (server, address):
        first = await post(address, chat_body(100))
        await first.head()
        await first.chunk()
        queued = await post(address, chat_body(2))
        answer = await queued.head()
        assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert (len(server.engine.running), len(server.engine.waiting)) == (1, 1)
        role = await queued.chunk()
        assert b'"role":"assistant"' in role
        assert not server.engine.waiting
        assert (await first.rest()).whole
        assert (await queued.rest()).events[-1] == "[DONE]"


async def test_a_stream_is_one_event_a_token_and_the_ledger_agrees() -> None:
    async with serving() as (server, address):
        exchange = await post(
            address, chat_body(12, stream_options={"include_usage": True}), headers="x-request-id: a\r\n"
        )
        await exchange.head()
        answer = await exchange.rest()
    assert answer.whole
    assert len(answer.text_events) == 12
    usage = json.loads(answer.events[-2])
    assert usage["id"] == "chatcmpl-a"
    assert usage["usage"] == {"prompt_tokens": 2, "total_tokens": 14, "completion_tokens": 12}
    entry = server.ledger.entries["chatcmpl-a"]
    assert (entry.prompt_tokens, entry.sent_tokens, entry.finish) == (2, 12, "length")


async def test_a_client_that_leaves_frees_its_slot_uncounted() -> None:
    async with serving("--max-num-seqs 1") as (server, address):
        leaver = await post(address, chat_body(30_000), headers="x-request-id: leaver\r\n")
        await leaver.head()
        await leaver.chunk()
        queued = await post(address, chat_body(30_000, stream=False))
        await until(lambda: server.engine.waiting, "the second request waits")
        leaver.close()
        await until(lambda: not server.engine.waiting, "the slot is free again")
        queued.close()
        await until(lambda: not server.engine.running, "a client that waits for a whole answer leaves, too")
        values = {
            s.name + s.labels.get("finished_reason", ""): s.value
            for s in parse((await get(address, "/metrics")).body.decode())
        }
    assert values["vllm:num_requests_running"] == 0
    assert values["vllm:request_success_totalabort"] == 0
    assert server.ledger.entries["chatcmpl-leaver"].finish == "left"


async def test_other_routes() -> None:
    async with serving("--max-model-len 2048") as (_, address):
        health, models = await get(address, "/health"), await get(address, "/v1/models")
        assert (health.status, health.body) == (200, b"")
        assert json.loads(models.body)["data"][0]["max_model_len"] == 2048
        assert (await get(address, "/version")).body == b'{"version":"0.32.0"}'
        assert (await get(address, "/load")).body == b'{"server_load":0}'
        missing, wrong = await get(address, "/nope"), await get(address, "/v1/chat/completions")
        assert (missing.status, missing.body) == (404, b'{"detail":"Not Found"}')
        assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
        assert (await get(address, "/metrics")).headers["content-type"] == "text/plain; version=1.0.0; charset=utf-8"


async def test_a_queue_limit_refuses_late_ones_by_status_and_some_of_a_burst_by_event() -> None:
    async with serving("--max-num-seqs 1 --max-num-queued-reqs 2") as (server, address):
        burst = [await post(address, chat_body(400)) for _ in range(6)]
        heads = [await exchange.head() for exchange in burst]
        await until(lambda: server.engine.in_flight == 2, "as many as the limit allows")
        late = await post(address, chat_body(400))
        assert (await late.head()).status == 503
        assert error_message((await late.rest()).body).startswith("The engine is currently busy")
        for exchange, head in zip(burst, heads, strict=True):
            assert head.status in (200, 503)
            exchange.close()


# Ends.


async def start_streams(address: Address, n: int, tokens: int) -> list[Exchange]:
    exchanges = [await post(address, chat_body(tokens)) for _ in range(n)]
    for exchange in exchanges:
        await exchange.head()
    return exchanges


async def test_a_drain_finishes_what_was_accepted_and_refuses_the_rest() -> None:
    async with serving(f"--max-num-seqs 2 {HOUR}") as (server, address):
        streams = await start_streams(address, 3, 40)  # the third is queued
        server.terminate()
        assert (await get(address, "/health")).status == 200
        late = await post(address, chat_body(2))
        assert (await late.head()).status == 500
        assert (await late.rest()).body == (
            b'{"error":{"message":"cannot schedule new futures after shutdown","type":"InternalServerError",'
            b'"param":null,"code":500}}'
        )
        server.terminate()  # a second one changes nothing
        for stream in streams:
            answer = await stream.rest()
            assert answer.whole
            assert (len(answer.text_events), answer.events[-1]) == (40, "[DONE]")
        assert await server.wait() == 0
        assert await refused(address)


async def test_an_idle_server_drains_at_once() -> None:
    async with serving(HOUR) as (server, _):
        server.terminate()
        assert await server.wait() == 0


async def test_the_end_of_a_drain_aborts_what_is_left() -> None:
    async with serving("--shutdown-timeout 10", form=AbortForm.ABORT) as (server, address):
        (stream,) = await start_streams(address, 1, 30_000)
        server.terminate()
        answer = await stream.rest()
        assert '"finish_reason":"abort"' in answer.events[-2]
        assert await server.wait() == 0


async def test_an_abort_may_hang_until_the_client_leaves() -> None:
    async with serving(form=AbortForm.HANG) as (server, address):
        (stream,) = await start_streams(address, 1, 30_000)
        await stream.chunk()
        server.terminate()
        assert await refused(address)
        sent = next(iter(server.ledger.entries.values())).sent_tokens
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(server.wait(), 0.1)  # many times its usual end
        assert next(iter(server.ledger.entries.values())).sent_tokens == sent
        stream.close()
        assert await server.wait() == 0
        assert next(iter(server.ledger.entries.values())).finish is None


async def test_an_abort_may_send_an_error_event() -> None:
    async with serving("--max-num-seqs 2", form=AbortForm.ERROR) as (server, address):
        streams = await start_streams(address, 2, 30_000)
        whole = await post(address, chat_body(30_000, stream=False))
        await until(lambda: server.engine.waiting, "the third is queued")
        for stream in streams:
            await stream.chunk()
        server.terminate()
        for stream in streams:
            answer = await stream.rest()
            assert answer.whole
            assert answer.events[-2:] == [
                '{"error": {"message": "EngineCore encountered an issue. See stack trace (above) for the root cause.", '
                '"type": "InternalServerError", "param": null, "code": 500}}',
                "[DONE]",
            ]
        assert (await whole.head()).status == 500
        assert error_message((await whole.rest()).body).startswith("EngineCore encountered an issue")
        assert await server.wait() == 0


async def test_an_abort_may_pass_for_an_end() -> None:
    async with serving("--max-num-seqs 1", form=AbortForm.ABORT) as (server, address):
        running, queued = await start_streams(address, 2, 30_000)
        whole = await post(address, chat_body(30_000, stream=False))
        await until(lambda: len(server.engine.waiting) == 2, "the others are queued")
        await running.chunk()
        server.terminate()
        for stream in (running, queued):
            answer = await stream.rest()
            assert answer.whole
            assert '"finish_reason":"abort","stop_reason":null' in answer.events[-2]
            assert answer.events[-1] == "[DONE]"
        assert (await whole.head()).status == 200
        assert json.loads((await whole.rest()).body)["choices"][0]["finish_reason"] == "abort"
        assert await server.wait() == 0


async def test_kill_cuts_streams_in_the_middle() -> None:
    async with serving(HOUR) as (server, address):
        (stream,) = await start_streams(address, 1, 30_000)
        await stream.chunk()
        server.kill()
        answer = await stream.rest()
        assert not answer.whole
        assert "[DONE]" not in answer.events
        assert await server.wait() == 137
        assert await refused(address)


async def test_idle_connections_end_at_the_signal() -> None:
    async with serving(form=AbortForm.HANG) as (server, address):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        server.terminate()
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()
        assert await server.wait() == 0


def test_the_model_must_fit_into_the_cache() -> None:
    flags = parse_flags(["--num-gpu-blocks-override", "10"])
    with pytest.raises(FlagError) as error:
        engine_limits(flags, PROFILES["llama-8b-h100"])
    assert "larger than the maximum number of tokens" in str(error.value)
