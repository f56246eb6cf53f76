"""The engine alone, in virtual time: order, batch, budget, blocks."""

from __future__ import annotations

import asyncio

import pytest

from fakes.vllm.engine import Engine, EngineLimits, EngineRequest, State
from fakes.vllm.metrics import EngineMetrics
from fakes.vllm.presets import LatencyProfile

pytestmark = pytest.mark.looptime

# A step takes 10 ms whatever is in it, so that times say how many steps went by.
FLAT = LatencyProfile(10e-3, 0.0, 0.0, 0.0, kv_blocks=1001, max_num_seqs=4, max_num_batched_tokens=100)
STEP_S = 0.010


class Notes:
    """A sink that writes down when each token came."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.finish: str | None = None

    def token(self, index: int, finish: str | None) -> None:
        assert index == len(self.times) + 1
        self.times.append(round(asyncio.get_running_loop().time(), 6))
        self.finish = finish


def make_engine(profile: LatencyProfile = FLAT, **limits: int) -> Engine:
    wanted = {"max_num_seqs": 4, "max_num_batched_tokens": 100, "kv_blocks": 1001, **limits}
    metrics = EngineMetrics("m", max_model_len=1000, cache_config={}, created_s=0.0)
    return Engine(profile, EngineLimits(**wanted), metrics)


def request(name: str, prompt: int = 10, tokens: int = 3) -> EngineRequest:
    return EngineRequest(name, prompt, tokens, "length", tokens, sink=Notes())


def notes(r: EngineRequest) -> Notes:
    assert isinstance(r.sink, Notes)
    return r.sink


async def run_until_idle(engine: Engine) -> None:
    while engine.in_flight:
        await asyncio.sleep(STEP_S)


async def test_one_request_gets_a_token_a_step_and_its_reason_with_the_last() -> None:
    engine, r = make_engine(), request("a")
    engine.submit(r)
    await run_until_idle(engine)
    assert notes(r).times == [0.01, 0.02, 0.03]
    assert notes(r).finish == "length"
    assert r.state is State.DONE
    assert engine.free_blocks == 1000


async def test_requests_beyond_the_slots_wait_in_their_order() -> None:
    engine = make_engine(max_num_seqs=2)
    requests = [request(str(i)) for i in range(6)]
    for r in requests:
        engine.submit(r)
    await asyncio.sleep(0.001)
    assert (len(engine.running), len(engine.waiting)) == (2, 4)
    await run_until_idle(engine)
    firsts = [notes(r).times[0] for r in requests]
    assert firsts == [0.01, 0.01, 0.04, 0.04, 0.07, 0.07]


async def test_a_long_prompt_is_prefilled_in_chunks_beside_decodes() -> None:
    engine = make_engine(max_num_batched_tokens=100)
    short, long = request("short", 10, 5), request("long", 250, 1)
    engine.submit(short)
    engine.submit(long)
    await run_until_idle(engine)
    # 90 tokens of the long prompt in the first step, 99 beside each decode after it: 90 + 99 + 61.
    assert notes(long).times == [0.03]
    assert notes(short).times == [0.01, 0.02, 0.03, 0.04, 0.05]


async def test_a_step_takes_longer_the_more_requests_it_carries() -> None:
    profile = LatencyProfile(10e-3, 0.0, 0.0, 1e-3, 1001, 64, 1000)
    engine = make_engine(profile, max_num_seqs=64, max_num_batched_tokens=1000)
    requests = [request(str(i), tokens=2) for i in range(10)]
    for r in requests:
        engine.submit(r)
    await run_until_idle(engine)
    assert {tuple(notes(r).times) for r in requests} == {(0.02, 0.04)}


async def test_no_free_block_preempts_the_last_one_and_recomputes_it() -> None:
    # Two blocks of 16 for each prompt, and one block to spare: the second to grow finds none.
    engine = make_engine(kv_blocks=6, max_num_batched_tokens=1000)
    first, second = request("first", 32, 20), request("second", 32, 20)
    engine.submit(first)
    engine.submit(second)
    await asyncio.sleep(0.015)
    assert second.state is State.WAITING
    assert (second.computed, second.blocks, second.preemptions) == (0, 0, 1)
    await run_until_idle(engine)
    # It had its first token before, waited for the first to end at 0.2, and went on from its second token.
    assert notes(first).times[-1] == 0.2
    assert notes(second).times[:3] == [0.01, 0.21, 0.22]
    assert notes(second).finish == "length"
    assert len(notes(second).times) == 20
    assert engine.free_blocks == 5


async def test_a_client_that_leaves_frees_its_slot_for_the_next() -> None:
    engine = make_engine(max_num_seqs=1)
    gone, queued, last = request("gone", tokens=100), request("queued"), request("last")
    for r in (gone, queued, last):
        engine.submit(r)
    await asyncio.sleep(0.025)
    engine.abort(gone)
    engine.abort(queued)
    await run_until_idle(engine)
    assert notes(gone).times == [0.01, 0.02]
    assert notes(queued).times == []
    assert notes(last).times == [0.04, 0.05, 0.06]
    assert engine.free_blocks == 1000


async def test_a_stopped_engine_sends_nothing_more_and_its_gauges_go_stale() -> None:
    metrics = EngineMetrics("m", max_model_len=1000, cache_config={}, created_s=0.0)
    engine = Engine(FLAT, EngineLimits(4, 100, 1001), metrics)
    r = request("a", tokens=10)
    engine.submit(r)
    await asyncio.sleep(0.025)
    engine.stop()
    await asyncio.sleep(1)
    assert notes(r).times == [0.01, 0.02]
    assert metrics.running.value == 1


async def test_counters_agree_with_what_was_done() -> None:
    metrics = EngineMetrics("m", max_model_len=1000, cache_config={}, created_s=0.0)
    engine = Engine(FLAT, EngineLimits(2, 100, 1001), metrics)
    for i in range(3):
        engine.submit(request(str(i), prompt=7, tokens=4))
    await run_until_idle(engine)
    assert metrics.prompt_tokens.value == 21
    assert metrics.generation_tokens.value == 12
    assert metrics.success["length"].value == 3
    assert (metrics.ttft.count, metrics.itl.count, metrics.tpot.count) == (3, 9, 3)
    assert metrics.queue_time.sum == pytest.approx(0.04)  # the third waited four steps
    assert metrics.e2e.sum == pytest.approx(0.04 + 0.04 + 0.08)
    assert (metrics.running.value, metrics.waiting.value, metrics.kv_usage.value) == (0, 0, 0)
