"""The two usual asyncio clients, open loop: ``async_clients.py aiohttp|httpx PORT RATE SECONDS TOKENS``."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator

import aiohttp
import httpx
from arrivals import arrivals_s
from reading import Reading


def _body(tokens: int) -> dict[str, object]:
    return {"model": "m", "stream": True, "max_tokens": tokens, "messages": []}


async def _lines_of_aiohttp(client: aiohttp.ClientSession, url: str, tokens: int, name: str) -> AsyncIterator[bytes]:
    async with client.post(url, json=_body(tokens), headers={"X-Request-Id": name}) as answer:
        async for line in answer.content:
            yield line


async def _lines_of_httpx(client: httpx.AsyncClient, url: str, tokens: int, name: str) -> AsyncIterator[str]:
    async with client.stream("POST", url, json=_body(tokens), headers={"X-Request-Id": name}) as answer:
        async for line in answer.aiter_lines():
            yield line


async def _read(lines: AsyncIterator[bytes | str]) -> Reading:
    reading = Reading()
    async for line in lines:
        reading.take(line)
    return reading


async def main(which: str, port: int, rate: float, seconds: float, tokens: int) -> None:
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    start, before_s = time.monotonic(), time.process_time()
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as ours,
        httpx.AsyncClient(limits=httpx.Limits(max_connections=None), timeout=60) as theirs,
    ):
        tasks = []
        for i, t_s in enumerate(arrivals_s(rate, seconds)):
            await asyncio.sleep(max(0.0, start + t_s - time.monotonic()))
            lines: AsyncIterator[bytes | str] = (
                _lines_of_aiohttp(ours, url, tokens, f"1-{i}")
                if which == "aiohttp"
                else _lines_of_httpx(theirs, url, tokens, f"1-{i}")
            )
            tasks.append(asyncio.create_task(_read(lines)))
        readings = await asyncio.gather(*tasks)
    cpu_s = time.process_time() - before_s
    read = sum(reading.tokens for reading in readings if reading.whole(tokens))
    first_ns = {f"1-{i}": reading.first_ns for i, reading in enumerate(readings)}
    print(json.dumps({"tokens": read, "cpu_s": cpu_s, "first_ns": first_ns}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])))
