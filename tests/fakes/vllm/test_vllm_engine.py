"""The engine alone, in virtual time: order, batch, budget, blocks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fakes.vllm.blocks import block_hashes
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


def make_engine(profile: LatencyProfile = FLAT, **limits: int | bool) -> Engine:
    wanted: dict[str, Any] = {"max_num_seqs": 4, "max_num_batched_tokens": 100, "kv_blocks": 1001, **limits}
    metrics = EngineMetrics("m", max_model_len=1000, cache_config={}, created_s=0.0)
    return Engine(profile, EngineLimits(**wanted), metrics)


def request(name: str, prompt: int = 10, tokens: int = 3, *, priority: int = 0) -> EngineRequest:
    return EngineRequest(name, prompt, tokens, "length", tokens, sink=Notes(), priority=priority)


def prompted(words: str, tokens: int = 3, block_size: int = 16) -> EngineRequest:
    """A request whose prompt is known by its words, one for each letter."""
    hashes = block_hashes(list(words), block_size)
    return EngineRequest(words, len(words), tokens, "length", tokens, sink=Notes(), hashes=hashes)


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
    assert engine.pool.free == 1000


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
    assert (second.computed, len(second.held), second.preemptions) == (0, 0, 1)
    await run_until_idle(engine)
    # It had its first token before, waited for the first to end at 0.2, and went on from its second token.
    assert notes(first).times[-1] == 0.2
    assert notes(second).times[:3] == [0.01, 0.21, 0.22]
    assert notes(second).finish == "length"
    assert len(notes(second).times) == 20
    assert engine.pool.free == 5


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
    assert engine.pool.free == 1000


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


# The prefix cache. A step takes 1 ms a token, so that times say how many tokens were computed.

BY_TOKEN = LatencyProfile(0.0, 1e-3, 0.0, 0.0, kv_blocks=1001, max_num_seqs=4, max_num_batched_tokens=1000)


def cached_engine(**limits: int | bool) -> Engine:
    return make_engine(BY_TOKEN, **{"max_num_batched_tokens": 1000, **limits})


async def first_token_after_s(engine: Engine, r: EngineRequest) -> float:
    start_s = asyncio.get_running_loop().time()
    engine.submit(r)
    while engine.in_flight:
        await asyncio.sleep(1e-3)
    return round(notes(r).times[0] - start_s, 6)


async def test_a_prompt_that_begins_as_an_earlier_one_is_computed_from_where_they_part() -> None:
    engine = cached_engine()
    assert await first_token_after_s(engine, prompted("a" * 40 + "b" * 10)) == 0.050
    again = prompted("a" * 40 + "c" * 30)
    assert await first_token_after_s(engine, again) == 0.038  # two blocks of 16 were found
    assert again.hit_tokens == 32
    assert (
        await first_token_after_s(engine, prompted("b" + "a" * 49)) == 0.050
    )  # the words are the same, their places not


async def test_the_last_token_of_a_prompt_is_computed_even_if_all_is_known() -> None:
    engine = cached_engine()
    await first_token_after_s(engine, prompted("a" * 32))
    assert await first_token_after_s(engine, prompted("a" * 32)) == 0.016


async def test_the_captured_prompt_of_1500_tokens() -> None:
    """A real server with blocks of 128 found 1408 of 1500."""
    engine = cached_engine(block_size=128, max_num_batched_tokens=2048)
    await first_token_after_s(engine, prompted("a" * 1500, block_size=128))
    again = prompted("a" * 1500, block_size=128)
    await first_token_after_s(engine, again)
    assert again.hit_tokens == 1408


async def test_without_caching_nothing_is_found() -> None:
    engine = cached_engine(prefix_caching=False)
    for _ in range(2):
        assert await first_token_after_s(engine, prompted("a" * 50)) == 0.050


async def test_two_at_once_share_their_blocks() -> None:
    engine = cached_engine()
    first, second = prompted("a" * 33, 50), prompted("a" * 33, 50)
    engine.submit(first)
    engine.submit(second)
    await asyncio.sleep(1e-3)
    assert engine.pool.free == 1000 - 2 - 1 - 1  # two shared ones, and the rest of each
    engine.abort(first)
    assert engine.pool.free == 1000 - 3
    engine.abort(second)
    assert engine.pool.free == 1000


async def test_what_was_used_longest_ago_is_forgotten_first_and_an_end_before_a_beginning() -> None:
    engine = cached_engine(kv_blocks=8)  # seven to hand out
    old, new = "o" * 48, "n" * 48
    for words in (old, new):
        await first_token_after_s(engine, prompted(words, 1))
    await first_token_after_s(engine, prompted("x" * 32, 1))  # takes the one never used, and the end of the old one
    await first_token_after_s(engine, hit := prompted(old, 1))
    assert hit.hit_tokens == 32
    await first_token_after_s(engine, hit := prompted(new, 1))
    assert hit.hit_tokens == 32


async def test_a_preempted_request_finds_its_own_prefix_again() -> None:
    engine = cached_engine(kv_blocks=6)
    first, second = prompted("a" * 32, 20), prompted("b" * 32, 20)
    engine.submit(first)
    engine.submit(second)
    await asyncio.sleep(0.070)
    assert (second.preemptions, second.state) == (1, State.WAITING)
    await run_until_idle(engine)
    assert engine.pool.free == 5
    assert len(notes(second).times) == 20


# Priorities.


async def test_the_lowest_number_goes_first() -> None:
    engine = make_engine(max_num_seqs=1, by_priority=True)
    waits = [request(str(p), priority=p) for p in (5, 1, 3, 1)]
    for r in waits:
        engine.submit(r)
    await run_until_idle(engine)
    by_time = sorted(waits, key=lambda r: notes(r).times[0])
    assert [r.priority for r in by_time] == [1, 1, 3, 5]
    assert by_time[0] is waits[1]


async def test_the_highest_number_is_preempted_even_if_it_came_first() -> None:
    engine = make_engine(kv_blocks=6, max_num_batched_tokens=1000, by_priority=True)
    low, high = request("low", 32, 20, priority=9), request("high", 32, 20, priority=0)
    engine.submit(low)
    engine.submit(high)
    await asyncio.sleep(0.015)
    assert (low.preemptions, high.preemptions) == (1, 0)
    await run_until_idle(engine)
    assert notes(high).times[-1] == 0.2
    assert engine.pool.free == 5


async def test_a_prompt_is_admitted_only_when_all_of_it_has_room() -> None:
    engine = make_engine(kv_blocks=6, max_num_batched_tokens=16)
    small, big = request("small", 32, 40), request("big", 64, 1)
    engine.submit(small)
    engine.submit(big)
    await asyncio.sleep(0.025)
    assert big.state is State.WAITING  # its first chunk would fit, all of it would not
    await run_until_idle(engine)
    assert notes(big).finish == "length"
