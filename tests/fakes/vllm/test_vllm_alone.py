"""``python -m fakes.vllm``: what it prints, refuses, serves, and how it ends."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from raw_client import begin, chat_body, get, post

from fakes.vllm.__main__ import main
from fakes.vllm.presets import PROFILES, SOURCES

DEADLINE_S = 30.0


@asynccontextmanager
async def alone(*args: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, tuple[str, int]]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fakes.vllm", "--port", "0", "--served-model-name", "m", *args,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            line = (await process.stdout.readline()).decode()
        found = re.search(r"on ([\d.]+):(\d+)", line)
        assert found is not None, line
        yield process, (found[1], int(found[2]))
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def ended(process: asyncio.subprocess.Process) -> int:
    async with asyncio.timeout(DEADLINE_S):
        return await process.wait()


async def serving(address: tuple[str, int]) -> bool:
    try:
        return (await get(address, "/health")).status == 200
    except OSError:
        return False


async def test_it_serves_and_drains_after_sigterm() -> None:
    async with alone("--shutdown-timeout", "60", "--time-scale", "100") as (process, address):
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            assert b"serving m on" in await process.stdout.readline()
        stream = await post(address, chat_body(60))
        await stream.head()
        process.send_signal(signal.SIGTERM)
        answer = await stream.rest()
        assert (answer.whole, len(answer.text_events)) == (True, 60)
        assert await ended(process) == 0


async def test_while_it_loads_it_refuses_connections_unless_told_to_lie() -> None:
    async with alone("--model-load-s", "3600") as (_, address):
        assert not await serving(address)
    async with alone("--model-load-s", "3600", "--healthy-while-loading") as (_, address):
        deadline = asyncio.get_running_loop().time() + DEADLINE_S
        while not await serving(address) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.02)
        stream = await post(address, chat_body(5))
        assert (await stream.head()).status == 200
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(stream.chunk(), 0.2)
        stream.close()


async def test_a_server_that_runs_out_of_memory_ends_with_137_in_the_middle_of_an_answer() -> None:
    async with alone("--oom-at", "1") as (process, address):
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            await process.stdout.readline()
        stream = await post(address, chat_body(2000))
        await stream.head()
        assert not (await stream.rest()).whole
        assert await ended(process) == 137


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--max-num-seq", "4"], "did you mean --max-num-seqs?"),
        (["--enable-lora"], "this fake models nothing of the kind (see --help)"),
        (["--port", "many"], "argument --port: invalid int value: 'many'"),
        (["--latency-profile", "gpt"], "argument --latency-profile: invalid choice: 'gpt'"),
        (["--max-model-len", "10000000"], "larger than the maximum number of tokens"),
    ],
)
def test_what_it_refuses_is_one_line_with_a_hint(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert says in said
    assert said.count("\n") == 1


def test_help_names_every_profile_and_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["--help"])
    assert exited.value.code == 0
    said = capsys.readouterr().out
    assert PROFILES.keys() == SOURCES.keys()
    assert all(name in said and source in said for name, source in SOURCES.items())
    assert "--shutdown-timeout" in said


async def test_an_engine_that_is_stuck_says_nothing_while_health_is_200() -> None:
    async with alone("--engine-stuck-after", "1") as (process, address):
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            await process.stdout.readline()
        stream = await post(address, chat_body(50))
        assert (await stream.head()).status == 200
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(stream.rest(), 0.3)
        assert await serving(address)
        stream.close()


async def test_a_busy_server_sends_away_and_a_silent_one_says_nothing() -> None:
    async with alone("--busy-at", "1", "--silent-after", "2") as (process, address):
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            await process.stdout.readline()
        first = await post(address, chat_body(20_000))
        await first.head()
        away = await post(address, chat_body(5))
        assert (await away.head()).status == 429
        assert (await away.rest()).whole
        first.close()
        last = await post(address, chat_body(5))
        health = await begin(address, b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(health.head(), 0.5)
        for exchange in (last, health):
            exchange.close()
