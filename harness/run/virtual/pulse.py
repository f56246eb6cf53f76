"""A little traffic for ever, so that a service has something to show: two short chats a second."""

from __future__ import annotations

import asyncio
import contextlib
import json

from fakes.gateway.local import LocalEntry
from harness.run.virtual.senses import Listener

EVERY_S = 0.5


async def pulse(entry: LocalEntry, model: str) -> None:
    body = json.dumps(
        {
            "model": model,
            "messages": [{"role": "user", "content": "how are you"}],
            "max_tokens": 20,
            "stream": True,
        }
    ).encode()
    async with asyncio.TaskGroup() as tasks:
        number = 0
        while True:
            number += 1
            tasks.create_task(_chat(entry, body, f"pulse-{number}"))
            await asyncio.sleep(EVERY_S)


async def _chat(entry: LocalEntry, body: bytes, name: str) -> None:
    with contextlib.suppress(ConnectionResetError, TimeoutError):
        async with asyncio.timeout(10.0):
            await entry.chat(body, name, Listener())
