"""The engine as vLLM's V1 scheduler runs it: a waiting queue, a batch, a token budget, and blocks of KV cache.

Each step takes running requests first (one token each in decode, the next chunk of a prompt in prefill), then admits
from the waiting queue as far as sequences, budget and blocks go; of a prompt's beginning, what is found in the prefix
cache is not computed again. When a running request finds no free block, another is preempted: its blocks are freed, it
is recomputed from its first token (its prefix may be found again), and it waits at the head of the queue; nothing is
admitted in that step. There is one loop event per step, not per token.

The queue is first come, first served; with ``by_priority`` the lowest number goes first and the highest is preempted.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fakes.vllm.blocks import BlockPool, Held
from fakes.vllm.duty import DutyCycle
from fakes.vllm.metrics import EngineMetrics
from fakes.vllm.presets import LatencyProfile
from fakes.vllm.waiting import WaitingQueue

LAG_MAX_S = 0.05
"""Steps are planned end to end, so that timer granularity does not slow the engine; what lies further behind than this
is a stall of the machine and is not made up for."""


class TokenSink(Protocol):
    """Where a request's tokens go. Called in the step's event: it must not await, and must not raise."""

    def token(self, index: int, finish: str | None) -> None:
        """Token number ``index`` (from 1); ``finish`` with the last one: ``stop`` or ``length``."""
        ...


class State(enum.Enum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


@dataclass(slots=True, eq=False)
class EngineRequest:
    """One sequence. It ends with token number ``stop_at``, for ``stop_reason``. ``hashes`` are those of the full blocks
    of its prompt."""

    id: str
    prompt_tokens: int
    stop_at: int
    stop_reason: str
    max_tokens: int
    sink: TokenSink
    hashes: Sequence[int] = ()
    priority: int = 0
    state: State = State.WAITING
    computed: int = 0
    generated: int = 0
    held: Held = field(default_factory=Held)
    hit_tokens: int = 0
    """Of its prompt, found in the prefix cache at its first admission."""
    preemptions: int = 0
    arrived_s: float = 0.0
    scheduled_s: float | None = None
    first_token_s: float = 0.0
    last_token_s: float = 0.0


@dataclass(frozen=True, slots=True)
class EngineLimits:
    max_num_seqs: int
    max_num_batched_tokens: int
    kv_blocks: int
    block_size: int = 16
    prefix_caching: bool = True
    by_priority: bool = False


Batch = list[tuple[EngineRequest, int]]


class Engine:
    def __init__(self, profile: LatencyProfile, limits: EngineLimits, metrics: EngineMetrics) -> None:
        self._profile = profile
        self.limits = limits
        self.metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.Handle | None = None
        self._step_end_s = 0.0
        self._step_before_s = 0.0
        self.stopped = False
        self.duty = DutyCycle()
        self._frozen = False
        self.waiting = WaitingQueue(by_priority=limits.by_priority)
        self.running: list[EngineRequest] = []
        # One block is vLLM's null block and is never handed out.
        self._usable = max(1, limits.kv_blocks - 1)
        self.pool = BlockPool(limits.kv_blocks - 1, caching=limits.prefix_caching)

    def submit(self, request: EngineRequest) -> None:
        request.arrived_s = self._loop.time()
        self.waiting.add(request)
        self._show_queue()
        if self._handle is None and not self.stopped and not self._frozen:
            # Not at once: arrivals of the same loop turn share the first step.
            self._step_end_s = request.arrived_s
            self._handle = self._loop.call_soon(self._start_step)

    def abort(self, request: EngineRequest) -> None:
        """Frees the slot of a request whose client has gone. As in vLLM, no counter shows it."""
        if request.state is State.RUNNING:
            self.running.remove(request)
        elif request.state is State.WAITING:
            self.waiting.remove(request)
        else:
            return
        self._release(request, State.DONE)
        self._show_queue()

    def freeze(self) -> None:
        """Its machine stands still: the step under way is the last one until ``thaw``."""
        self._frozen = True

    def thaw(self) -> None:
        if self._frozen:
            self._frozen = False
            if self._handle is None and not self.stopped:
                self._step_end_s = self._loop.time()
                self._handle = self._loop.call_soon(self._start_step)

    def stop(self) -> None:
        """The engine is dead: no further step. What was queued or running stays as it is, and so do the gauges."""
        self.stopped = True
        self.duty.end(self._loop.time())
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    @property
    def in_flight(self) -> int:
        return len(self.running) + len(self.waiting)

    def prefill_tokens(self) -> int:
        """Of all prompts that have given no token yet, computed or not."""
        waiting = sum(r.prompt_tokens for r in self.waiting if not r.generated)
        return waiting + sum(r.prompt_tokens for r in self.running if not r.generated)

    # One step.

    def _start_step(self) -> None:
        if self._frozen:
            self._handle = None
            return
        batch = self._schedule()
        self._show_queue()
        if not batch:
            self._handle = None
            self.duty.end(self._step_end_s)
            return
        tokens = kv_tokens = 0
        for request, n in batch:
            tokens += n
            if n == 1:
                kv_tokens += request.computed
        start_s = max(self._step_end_s, self._loop.time() - LAG_MAX_S)
        self.duty.begin(start_s)
        self._step_end_s = start_s + self._profile.step_s(tokens, kv_tokens, len(batch))
        self._handle = self._loop.call_at(self._step_end_s, self._finish_step, batch)

    def _schedule(self) -> Batch:
        batch: Batch = []
        budget = self.limits.max_num_batched_tokens
        preempted = False
        i = 0
        while i < len(self.running) and budget > 0:
            request = self.running[i]
            n = min(request.prompt_tokens + request.generated - request.computed, budget)
            while not self._reserve(request, n):
                preempted = True
                victim = self._preempt()
                if victim is request:
                    return batch
                if self.running[i : i + 1] != [request]:  # one that had its turn in this step gives its tokens back
                    i -= 1
                    budget += sum(tokens for r, tokens in batch if r is victim)
                    batch = [(r, tokens) for r, tokens in batch if r is not victim]
            batch.append((request, n))
            budget -= n
            i += 1
        if not preempted:
            self._admit(batch, budget)
        return batch

    def _admit(self, batch: Batch, budget: int) -> None:
        now, size = self._loop.time(), self.limits.block_size
        while self.waiting and budget > 0 and len(self.running) < self.limits.max_num_seqs:
            request = self.waiting.first()
            tokens = request.prompt_tokens + request.generated
            # The last token is computed in any case: its logits are wanted.
            found = self.pool.hits(request.hashes, (tokens - 1) // size)
            n = min(tokens - found * size, budget)
            if not self.pool.fits(request.hashes[:found], -(-tokens // size) - found):
                return  # all of its prompt must have room, though only a chunk of it takes it now
            self.pool.take(request.held, request.hashes[:found], -(-(found * size + n) // size) - found)
            self.waiting.take_first()
            request.state = State.RUNNING
            request.computed = found * size
            self._publish(request, n)
            if request.scheduled_s is None:
                request.scheduled_s = now
                request.hit_tokens = min(found * size, request.prompt_tokens)
                self.metrics.admitted(tokens, request.hit_tokens)
            self.running.append(request)
            batch.append((request, n))
            budget -= n

    def _reserve(self, request: EngineRequest, n: int) -> bool:
        """Takes the blocks that ``n`` more tokens need, or none of them."""
        missing = -(-(request.computed + n) // self.limits.block_size) - len(request.held)
        if missing > 0 and not self.pool.take(request.held, (), missing):
            return False
        if n > 1:
            self._publish(request, n)
        return True

    def _publish(self, request: EngineRequest, n: int) -> None:
        """Blocks count as filled when they are scheduled: who is admitted in the same step can find them."""
        if request.hashes:
            full = (request.computed + n) // self.limits.block_size
            self.pool.publish(request.held, request.hashes[:full])

    def _preempt(self) -> EngineRequest:
        """The last one, or of those with the highest number the one that came last."""
        if self.limits.by_priority:
            request = max(self.running, key=lambda r: (r.priority, r.arrived_s))
            self.running.remove(request)
        else:
            request = self.running.pop()
        self._release(request, State.WAITING)
        request.computed = 0
        request.preemptions += 1
        self.metrics.preemptions.value += 1
        self.waiting.put_back(request)
        return request

    def _release(self, request: EngineRequest, state: State) -> None:
        self.pool.release(request.held)
        request.state = state

    def _finish_step(self, batch: Batch) -> None:
        now, before = self._step_end_s, self._step_before_s
        self._step_before_s = now
        ended = False
        metrics, running = self.metrics, State.RUNNING
        made = decoded = prompts = 0
        for request, n in batch:
            if request.state is not running:
                continue  # its client left during the step
            request.computed += n
            if request.computed < request.prompt_tokens + request.generated:
                continue  # more of its prompt to come
            request.generated = index = request.generated + 1
            made += 1
            if index == 1:
                request.first_token_s = now
                prompts += request.prompt_tokens
                metrics.first_token(request, now)
            elif request.last_token_s == before:
                decoded += 1
            else:
                metrics.itl.observe(now - request.last_token_s)
            request.last_token_s = now
            if index >= request.stop_at:
                self._release(request, State.DONE)
                ended = True
                metrics.finished(request, now)
                request.sink.token(index, request.stop_reason)
            else:
                request.sink.token(index, None)
        if decoded:
            metrics.itl.observe(now - before, decoded)
        metrics.generation_tokens.value += made
        if made:
            metrics.iteration_tokens.observe(made + prompts)
        if ended:
            self.running = [r for r in self.running if r.state is running]
        if not self.stopped:
            self._start_step()

    def _show_queue(self) -> None:
        self.metrics.show_queue(len(self.running), len(self.waiting), 1 - self.pool.free / self._usable)
