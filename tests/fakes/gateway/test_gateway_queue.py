"""What a request waits for at the gateway, which replica it is given, and what it is told when it was in vain."""

from __future__ import annotations

import asyncio
import json
from random import Random

import pytest
from gateway_scene import Client, in_the_middle, scene

from fakes.config import GatewayConfig, PlantedBug
from fakes.gateway.prefixes import BLOCK_BYTES, KEPT_BLOCKS, PrefixIndex, prefix_hashes
from fakes.gateway.router import UNEVEN_MAX, Backend, Router
from fakes.vllm.server import AbortForm

pytestmark = pytest.mark.looptime


async def test_who_finds_all_replicas_full_waits_for_the_first_that_has_room() -> None:
    async with scene(GatewayConfig(endpoints_lag_s=0, in_flight_max=1)) as s:
        await s.add("llm-a")
        first, second, third = Client(), Client(), Client()
        calls = [await in_the_middle(s, first, 60)]
        calls += [asyncio.create_task(s.chat(client, 20)) for client in (second, third)]
        await asyncio.sleep(0.05)
        assert (len(s.gateway.forwarder.queue), second.status, third.status) == (2, 0, 0)
        assert "gateway_requests_queued 2.0" in s.entry.metrics_text()
        await asyncio.gather(*calls)
        assert [c.tokens for c in (first, second, third)] == [60, 20, 20]
        assert s.gateway.router.backends["llm-a"].in_flight == 0


async def test_a_new_replica_takes_who_waits() -> None:
    async with scene(GatewayConfig(endpoints_lag_s=0, in_flight_max=1)) as s:
        await s.add("llm-a")
        running, waiting = Client(), Client()
        held = await in_the_middle(s, running, 2000)
        call = asyncio.create_task(s.chat(waiting, 20))
        await asyncio.sleep(0.05)
        await s.add("llm-b")
        await call
        assert waiting.served_by[0] == "llm-b"
        held.cancel()


async def test_a_full_queue_is_a_503_at_once_and_a_wait_in_vain_one_later() -> None:
    async with scene(GatewayConfig(endpoints_lag_s=0, in_flight_max=1, queue_max=1, queue_s=2.0)) as s:
        await s.add("llm-a")
        held = await in_the_middle(s, Client(), 2000)
        waiting, late = Client(), Client()
        call = asyncio.create_task(s.chat(waiting))
        await asyncio.sleep(0.01)
        await s.chat(late)
        assert (late.status, late.said) == (503, "1 requests wait for service llm")
        await call
        assert (waiting.status, waiting.said) == (503, "no replica of service llm had room within 2 s")
        held.cancel()
        await asyncio.wait([held])
        assert s.gateway.router.backends["llm-a"].in_flight == 0
        assert not len(s.gateway.forwarder.queue)


async def test_a_replica_that_does_not_begin_to_answer_is_a_504() -> None:
    async with scene(GatewayConfig(endpoints_lag_s=0, answer_s=3.0)) as s:
        server = await s.add("llm-a")
        server.stand_still()
        client, start_s = Client(), asyncio.get_running_loop().time()
        await s.chat(client)
        assert client.status == 504
        assert client.said == "llm-a had not begun to answer within 3 s"
        assert client.served_by == ("llm-a", "node-of-llm-a")
        assert asyncio.get_running_loop().time() - start_s == pytest.approx(3.0)


async def test_a_long_answer_that_has_begun_is_no_504() -> None:
    async with scene(GatewayConfig(endpoints_lag_s=0, answer_s=0.1)) as s:
        await s.add("llm-a")
        client = Client()
        await s.chat(client, 200)
        assert (client.status, client.tokens) == (200, 200)


async def test_endpoints_count_as_late_as_a_proxy_hears_of_them() -> None:
    async with scene(GatewayConfig(endpoints_lag_s=4.0)) as s:
        start_s = asyncio.get_running_loop().time()
        await s.add("llm-a")  # waits until the gateway knows it
        assert asyncio.get_running_loop().time() - start_s == pytest.approx(4.0, abs=0.1)


@pytest.mark.parametrize(("bugs", "status"), [((), 503), ((PlantedBug.GATEWAY_ROUTES_BEFORE_READY,), 502)])
async def test_who_is_not_ready_gets_nothing_from_a_gateway_without_the_bug(
    bugs: tuple[PlantedBug, ...], status: int
) -> None:
    async with scene(GatewayConfig(endpoints_lag_s=0), bugs) as s:
        await s.add("llm-a", loaded=False, form=AbortForm.HANG, ready=False)
        client = Client()
        await s.chat(client)
        assert client.status == status


# Prefixes.


def router(*pods: str) -> Router:
    backends = {pod: Backend(pod, "node", ("x", 1), routable=True) for pod in pods}
    return Router(Random(1), prefixes=PrefixIndex(), backends=backends)


def body(text: str) -> tuple[int, ...]:
    return prefix_hashes(json.dumps({"messages": [{"content": text}]}).encode())


def test_who_has_seen_the_beginning_goes_first_unless_it_has_much_more_to_do() -> None:
    r = router("a", "b")
    first = r.pick((), body("x" * 900))
    assert first is not None
    other = next(b for b in r.backends.values() if b is not first)
    assert r.pick((), body("x" * 640 + "y" * 100)) is first
    first.in_flight = UNEVEN_MAX
    assert r.pick((), body("x" * 900)) is first
    first.in_flight = UNEVEN_MAX + 1
    assert r.pick((), body("x" * 900)) is other
    first.in_flight = 1
    assert r.pick((), body("z" * 900)) is other, "unknown to all: the least loaded"


def test_blocks_count_from_the_beginning_and_the_oldest_are_forgotten() -> None:
    index, one = PrefixIndex(), prefix_hashes(b"a" * BLOCK_BYTES * 3)
    index.note("a", one)
    assert index.matched("a", one) == 3
    assert index.matched("a", prefix_hashes(b"b" + b"a" * BLOCK_BYTES * 3)) == 0
    assert index.matched("b", one) == 0
    index.note("a", range(KEPT_BLOCKS))
    assert index.matched("a", one) == 0
    index.note("a", one)
    index.forget("a")
    assert index.matched("a", one) == 0


async def test_prompts_with_one_beginning_stay_on_one_replica_and_find_it_computed() -> None:
    async with scene(GatewayConfig(endpoints_lag_s=0, policy="prefix_aware")) as s:
        servers = {pod: await s.add(pod) for pod in ("llm-a", "llm-b")}
        for i in range(4):
            await s.chat(Client(), 5, content=" ".join(["same"] * 300) + f" but {i}")
        ((pod, status),) = s.gateway.metrics.answered
        assert (status, s.gateway.metrics.answered[pod, status]) == (200, 4)
        text = servers[pod].engine.metrics.text()
    assert 'vllm:prefix_cache_hits_total{engine="0",model_name="m"} 864.0' in text  # three times 18 blocks of 16
