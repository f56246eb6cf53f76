"""The server as a container: loading, probes, signals, planted bugs."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from random import Random

from raw_client import chat_body, post

from fakes.config import PlantedBug
from fakes.timing import Durations, Spread, Timing
from fakes.vllm.container import VllmContainer
from fakes.vllm.ledger import LedgerFile
from harness.kube.port import Json

SLOW_LOAD = Timing(1, replace(Durations(), model_load=Spread(3600)))
FAST = Timing(100, replace(Durations(), model_load=Spread(5)))


def pod(**annotations: str) -> Json:
    meta = {"name": "llm-1", "annotations": annotations, "creationTimestamp": "2026-11-29T12:00:00Z"}
    args = ["--served-model-name", "m", "--max-num-seqs", "4", "--shutdown-timeout", "3600"]
    return {"metadata": meta, "spec": {"containers": [{"name": "vllm", "image": "vllm/vllm-openai", "args": args}]}}


async def start(timing: Timing, *bugs: PlantedBug, template: Json | None = None) -> VllmContainer:
    p = template or pod()
    container = VllmContainer(p, p["spec"]["containers"][0], timing=timing, rng=Random(1), bugs=frozenset(bugs))
    await container.start()
    return container


async def serving(*bugs: PlantedBug) -> VllmContainer:
    container = await start(FAST, *bugs)
    async with asyncio.timeout(10):
        while container.probe("/health") != 200:
            await asyncio.sleep(0.005)
    return container


def address(container: VllmContainer) -> tuple[str, int]:
    assert container.address is not None
    return container.address


async def test_while_it_loads_the_port_is_taken_but_refuses_and_sigterm_is_swallowed() -> None:
    container = await start(SLOW_LOAD)
    try:
        await asyncio.open_connection(*address(container))
        raise AssertionError("it listened")
    except ConnectionRefusedError:
        assert container.probe("/health") is None
    try:
        await asyncio.start_server(lambda r, w: None, *address(container))
        raise AssertionError("the port was free")
    except OSError:
        container.terminate()
    assert container.probe("/health") is None
    container.kill()
    assert await container.wait() == 137


async def test_it_serves_once_loaded_and_drains() -> None:
    container = await serving()
    assert (container.probe("/health"), container.probe("/nope")) == (200, 404)
    stream = await post(address(container), chat_body(20))
    await stream.head()
    container.terminate()
    assert container.probe("/health") == 200
    assert (await stream.rest()).events[-1] == "[DONE]"
    assert await container.wait() == 0
    assert container.probe("/health") is None
    assert [(e.sent_tokens, e.finish) for e in container.ledger.entries.values()] == [(20, "length")]


async def test_planted_a_server_that_aborts_whatever_its_flags_say() -> None:
    container = await serving(PlantedBug.SERVER_ABORTS_ON_SIGTERM)
    stream = await post(address(container), chat_body(30_000))
    await stream.head()
    await stream.chunk()
    container.terminate()
    assert container.probe("/health") is None
    container.kill()
    answer = await stream.rest()
    assert not answer.whole or "abort" in answer.events[-2] or "error" in answer.events[-2]
    assert [e.finish for e in container.ledger.entries.values()] != ["length"]
    await container.wait()


async def test_planted_a_server_that_is_healthy_while_it_loads_and_gives_no_token() -> None:
    container = await start(SLOW_LOAD, PlantedBug.SERVER_HEALTHY_WHILE_LOADING)
    async with asyncio.timeout(30):
        while container.probe("/health") != 200:
            await asyncio.sleep(0.005)
    stream = await post(address(container), chat_body(3))
    await stream.head()
    (entry,) = container.ledger.entries.values()
    assert (entry.sent_tokens, entry.finish) == (0, None)
    container.thaw()  # as when the model is there
    assert (await stream.rest()).events[-1] == "[DONE]"
    assert entry.sent_tokens == 3
    container.kill()
    await container.wait()


async def test_a_bad_command_line_ends_with_code_2() -> None:
    template = pod()
    template["spec"]["containers"][0]["args"] = ["--max-num-seq", "4"]
    container = await start(FAST, template=template)
    assert (await container.wait(), container.address) == (2, None)
    unknown = await start(FAST, template=pod(**{"gpu-harness.dev/latency-profile": "llama-9b"}))
    assert await unknown.wait() == 2


async def test_kill_ends_open_streams_and_waiters() -> None:
    container = await serving()
    stream = await post(address(container), chat_body(30_000))
    await stream.head()
    await stream.chunk()
    waiters = [asyncio.create_task(container.wait()) for _ in range(2)]
    container.kill()
    container.kill()
    assert await asyncio.gather(*waiters) == [137, 137]
    assert not (await stream.rest()).whole
    assert [e.finish for e in container.ledger.entries.values()] == [None]


async def test_the_book_on_disk_shows_what_was_begun_and_what_was_sent(tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    p = pod()
    note = LedgerFile(file).of("llm-1")
    container = VllmContainer(p, p["spec"]["containers"][0], timing=FAST, rng=Random(1), note=note)
    await container.start()
    async with asyncio.timeout(10):
        while container.probe("/health") != 200:
            await asyncio.sleep(0.005)
    stream = await post(address(container), chat_body(20))
    await stream.head()
    assert (await stream.rest()).events[-1] == "[DONE]"
    container.terminate()
    assert await container.wait() == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["e"] for line in lines] == ["open", "close"]
    assert lines[0]["id"] == lines[1]["id"]
    assert (lines[1]["pod"], lines[1]["sent_tokens"], lines[1]["finish"]) == ("llm-1", 20, "length")
