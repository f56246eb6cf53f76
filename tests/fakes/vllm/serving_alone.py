"""One model server on a port of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random

from fakes.clock import WallClock
from fakes.timing import Timing
from fakes.vllm.flags import parse_flags
from fakes.vllm.mischief import NONE, Mischief
from fakes.vllm.presets import PROFILES
from fakes.vllm.server import AbortForm, ModelServer

FAST = Timing(time_scale=100)
Address = tuple[str, int]


@asynccontextmanager
async def serving(
    words: str = "", *, form: AbortForm | None = None, time_scale: float = 100, mischief: Mischief = NONE
) -> AsyncIterator[tuple[ModelServer, Address]]:
    flags = parse_flags(["--served-model-name", "m", *words.split()])
    weights = {form: 1} if form else {AbortForm.HANG: 1}
    wall = WallClock(datetime(2026, 11, 29, tzinfo=UTC))
    server = ModelServer(
        flags, PROFILES["llama-8b-h100"], timing=Timing(time_scale), rng=Random(7), wall=wall, abort_weights=weights,
        mischief=mischief,
    )  # fmt: skip
    address = server.bind()
    await server.listen()
    try:
        yield server, address
    finally:
        server.kill()
        await server.wait()


async def refused(address: Address) -> bool:
    try:
        _, writer = await asyncio.open_connection(*address)
    except ConnectionRefusedError:
        return True
    writer.close()
    return False
