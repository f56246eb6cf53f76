"""What the gateway does while there is no replica at all."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from fakes.config import GatewayConfig
from fakes.gateway.forwarder import Forwarder, OwnError
from fakes.gateway.links import Links
from fakes.gateway.metrics import GatewayMetrics
from fakes.gateway.mischief import GatewayMischief
from fakes.gateway.router import Backend, Router

pytestmark = pytest.mark.looptime


def forwarder(hold_s: float) -> tuple[Forwarder, Router, GatewayMetrics]:
    router, metrics = Router(Random(1)), GatewayMetrics()
    config = GatewayConfig(hold_s=hold_s)
    made = Forwarder("llm", router, metrics, Links(Random(1)), GatewayMischief((), Random(1)), config)
    return made, router, metrics


async def served(backend: Backend) -> str:
    return backend.pod


def refused(error: OwnError) -> str:
    return str(error.status)


async def test_without_a_hold_a_request_is_answered_503_at_once() -> None:
    gateway, _, _ = forwarder(0.0)
    assert await gateway.forward(served, refused) == "503"
    assert asyncio.get_running_loop().time() == 0


async def test_a_request_is_held_until_a_replica_comes() -> None:
    gateway, router, metrics = forwarder(20.0)
    asked = asyncio.create_task(gateway.forward(served, refused))
    await asyncio.sleep(5)
    assert metrics.held == 1 and metrics.in_flight == 1
    router.backends["llm-a"] = Backend("llm-a", "n", ("127.0.0.1", 1), routable=True)
    gateway.endpoints_changed()
    assert await asked == "llm-a"
    assert metrics.held == 0 and asyncio.get_running_loop().time() == 5


async def test_news_of_endpoints_that_cannot_serve_let_nobody_go() -> None:
    gateway, _, _ = forwarder(20.0)
    asked = asyncio.create_task(gateway.forward(served, refused))
    await asyncio.sleep(5)
    gateway.endpoints_changed()
    await asyncio.sleep(5)
    assert not asked.done()
    asked.cancel()


async def test_a_hold_that_is_over_ends_in_503() -> None:
    gateway, _, metrics = forwarder(20.0)
    assert await gateway.forward(served, refused) == "503"
    assert asyncio.get_running_loop().time() == 20 and metrics.held == 0


async def test_a_client_that_leaves_is_held_no_longer() -> None:
    gateway, _, metrics = forwarder(20.0)
    asked = asyncio.create_task(gateway.forward(served, refused))
    await asyncio.sleep(1)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    assert metrics.held == 0 and metrics.in_flight == 0


def test_requests_are_counted_by_the_user_that_they_name() -> None:
    metrics = GatewayMetrics()
    metrics.came(b'{"model":"m","messages":[],"max_tokens":3,"user":"batch"}')
    metrics.came(b'{"model":"m","messages":[{"role":"user","content":"\\"user\\":\\"no\\""}],"max_tokens":3}')
    text = metrics.text(Router(Random(1)))
    assert 'gateway_user_requests_total{user="batch"} 1' in text and 'user="no' not in text
