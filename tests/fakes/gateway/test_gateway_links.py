from __future__ import annotations

import asyncio
from random import Random

import pytest

from fakes.gateway.links import CLIENTS, PODS, LinkReset, Links, Quality

pytestmark = pytest.mark.looptime


async def test_latency_is_on_its_link_alone() -> None:
    links, loop = Links(Random(1)), asyncio.get_running_loop()
    links.set(PODS, Quality(latency_ms=200))
    before_s = loop.time()
    async with links.passing(CLIENTS):
        assert loop.time() == before_s
        async with links.passing(PODS, "node/a"):
            assert loop.time() - before_s == pytest.approx(0.2)


async def test_a_lost_request_waits_until_its_client_gives_up() -> None:
    links = Links(Random(1))
    links.set(CLIENTS, Quality(loss_ratio=1.0))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30), links.passing(CLIENTS):
            raise AssertionError("it was not lost")


async def test_a_reset_ends_what_is_under_way_wherever_it_is() -> None:
    links = Links(Random(1))

    async def request() -> None:
        async with links.passing(CLIENTS), links.passing(PODS, "node/a"):
            await asyncio.sleep(3600)

    hit, spared = asyncio.create_task(request()), asyncio.create_task(asyncio.sleep(5))
    await asyncio.sleep(1)
    links.set("node/a", Quality(reset_ratio=1.0))
    with pytest.raises(LinkReset):
        await hit
    links.set("node/a", None)
    await spared
    async with links.passing(PODS, "node/a"):
        pass


async def test_a_request_that_its_client_leaves_is_cancelled_not_reset() -> None:
    links = Links(Random(1))

    async def request() -> None:
        async with links.passing(CLIENTS):
            await asyncio.sleep(3600)

    task = asyncio.create_task(request())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
