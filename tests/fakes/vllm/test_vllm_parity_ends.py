"""How answers begin and end under trouble, against the bytes that a real vLLM 0.32 sent: overload, drain, abort, death.

``captures/ends.json`` has whole answers, and of streams that were running the last events (``…-tail``).
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from masking import mask, shown, split_chunks
from raw_client import Exchange, chat_body, get_bytes, post, post_bytes, read_whole
from seen import until
from serving_alone import Address, refused, serving

from fakes.vllm.server import AbortForm, ModelServer

ENDS: dict[str, str] = json.loads((Path(__file__).parent / "captures/ends.json").read_text())
LONG = 30_000


def captured(name: str) -> bytes:
    return ENDS[name].encode()


def tail(exchange_body: bytes, events: int) -> list[str]:
    """The last events of a body whose chunks have been taken apart already."""
    return [mask(e) for e in exchange_body.decode().split("\n\n")[-events - 1 : -1]]


def captured_tail(name: str) -> list[str]:
    chunks = split_chunks(captured(f"{name}-tail"))
    return [mask(chunk.removesuffix("\n\n")) for chunk in chunks[:-1]]


async def running_stream(address: Address) -> Exchange:
    exchange = await post(address, chat_body(LONG))
    await exchange.head()
    await exchange.chunk()
    await exchange.chunk()
    return exchange


async def fill(server: ModelServer, address: Address, n: int) -> list[Exchange]:
    held = [await post(address, chat_body(LONG)) for _ in range(n)]
    await until(lambda: server.engine.in_flight == n, "the server is full")
    return held


@pytest.mark.parametrize("name", ["queue-full-late-stream", "queue-full-late-nonstream"])
async def test_who_comes_to_a_full_queue_gets_a_503(name: str) -> None:
    async with serving("--max-num-seqs 1 --max-num-queued-reqs 2") as (server, address):
        held = await fill(server, address, 2)
        answer = await post_bytes(address, chat_body(5, stream=name.endswith("-stream")))
        for exchange in held:
            exchange.close()
    assert shown(answer) == shown(captured(name))


async def test_of_a_burst_some_streams_learn_it_from_their_first_event() -> None:
    async with serving("--max-num-seqs 2 --max-num-queued-reqs 1 --enable-request-id-headers") as (_, address):
        answers = await asyncio.gather(*(post_bytes(address, chat_body(5)) for _ in range(8)))
        late = {
            shown(a) for a in answers if b"Service Unavailable" in a.partition(b"\r\n\r\n")[2] and a[9:12] == b"200"
        }
        whole = await asyncio.gather(*(post_bytes(address, chat_body(5, stream=False)) for _ in range(8)))
    assert late == {shown(captured("queue-full-stream"))}
    assert {shown(a) for a in whole if a[9:12] == b"503"} == {shown(captured("queue-full-nonstream"))}


async def test_comments_keep_a_queued_stream_alive() -> None:
    wanted = captured("sse-keep-alive-comments")
    async with serving("--max-num-seqs 1 --sse-keep-alive-interval 0.02 --enable-request-id-headers") as (
        server,
        address,
    ):
        held = await fill(server, address, 1)
        queued = await post(address, chat_body(5))
        head = await queued.head()
        comments = [await queued.chunk() for _ in range(4)]
        held[0].close()
        answer = await queued.rest()
    assert head.headers["x-request-id"]
    assert [c.decode() for c in comments] == [": keep-alive\n\n"] * 4
    assert wanted.count(b"e\r\n: keep-alive\n\n\r\n") == 4
    assert answer.whole
    assert answer.events[-1] == "[DONE]"


@pytest.mark.parametrize("name", ["term-drain30-newpost-after-signal", "term-drain30-newstream-after-signal"])
async def test_a_draining_server_refuses_new_requests(name: str) -> None:
    async with serving("--shutdown-timeout 3600") as (server, address):
        stream = await running_stream(address)
        server.terminate()
        answer = await post_bytes(address, chat_body(5, stream="newstream" in name))
        health = await get_bytes(address, "/health")
        stream.close()
    assert shown(answer) == shown(captured(name))
    assert health.startswith(b"HTTP/1.1 200")


async def test_a_drained_stream_ends_as_ever() -> None:
    async with serving("--shutdown-timeout 3600") as (server, address):
        stream = await post(address, chat_body(50))
        await stream.head()
        server.terminate()
        answer = await stream.rest()
    assert answer.whole
    assert tail(answer.body, 2) == captured_tail("term-drain30-stream0")


@pytest.mark.parametrize(
    ("form", "name"), [(AbortForm.ABORT, "term-default-d-stream0"), (AbortForm.ERROR, "term-default-e-stream0")]
)
async def test_a_stream_that_is_aborted(form: AbortForm, name: str) -> None:
    async with serving(form=form) as (server, address):
        stream = await running_stream(address)
        server.terminate()
        answer = await stream.rest()
        code = await server.wait()
    assert answer.whole
    assert tail(answer.body, 2) == captured_tail(name)
    assert code == 0


async def test_an_engine_that_dies_is_seen_for_a_moment_and_the_process_ends_with_0() -> None:
    async with serving(time_scale=1.0) as (server, address):
        stream = await running_stream(address)
        whole = asyncio.create_task(post_bytes(address, chat_body(LONG, stream=False)))
        await until(lambda: server.engine.in_flight == 2, "both run")
        server.engine_dies()
        answers = {
            "kill-engine-nonstream": await whole,
            "kill-engine-newpost-after-signal": await post_bytes(address, chat_body(5, stream=False)),
            "kill-engine-newstream-after-signal": await post_bytes(address, chat_body(5)),
            "kill-engine-health-after-signal": await get_bytes(address, "/health"),
        }
        cut = await stream.rest()
        code = await server.wait()
        assert await refused(address)
    assert {name: shown(raw) for name, raw in answers.items()} == {name: shown(captured(name)) for name in answers}
    assert tail(cut.body, 2) == captured_tail("kill-engine-stream0")
    assert (cut.whole, code) == (True, 0)


@pytest.mark.parametrize("name", ["term-default-a-stream0", "kill-api-stream0"])
def test_a_stream_that_hangs_or_is_cut_has_no_end(name: str) -> None:
    """What ``test_vllm_server`` sees of the fake: no event after the last token, and no end of chunks."""
    with pytest.raises(ValueError, match="last chunk is missing"):
        split_chunks(captured(f"{name}-tail"))


async def test_read_whole_reads_a_chunked_answer_to_its_end() -> None:
    async with serving() as (_, address):
        raw = await read_whole(address, b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")
    assert shown(raw).status == "200 OK"
