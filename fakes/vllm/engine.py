"""The engine as vLLM's V1 scheduler runs it: a waiting queue, a batch, a token budget, and blocks of KV cache.

Each step takes running requests first (one token each in decode, the next chunk of a prompt in prefill), then admits
from the waiting queue, first come first served, as far as sequences, budget and blocks go. When a running request finds
no free block, the last running one is preempted: its blocks are freed, it is recomputed from its first token, and it
waits at the head of the queue; nothing is admitted in that step. There is one loop event per step, not per token.
"""

from __future__ import annotations

import asyncio
import enum
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from fakes.vllm.duty import DutyCycle
from fakes.vllm.metrics import EngineMetrics
from fakes.vllm.presets import LatencyProfile

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
    """One sequence. It ends with token number ``stop_at``, for ``stop_reason``."""

    id: str
    prompt_tokens: int
    stop_at: int
    stop_reason: str
    max_tokens: int
    sink: TokenSink
    state: State = State.WAITING
    computed: int = 0
    generated: int = 0
    blocks: int = 0
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


Batch = list[tuple[EngineRequest, int]]


class Engine:
    def __init__(self, profile: LatencyProfile, limits: EngineLimits, metrics: EngineMetrics) -> None:
        self._profile = profile
        self._limits = limits
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.Handle | None = None
        self._step_end_s = 0.0
        self.stopped = False
        self.duty = DutyCycle()
        self._frozen = False
        self.waiting: deque[EngineRequest] = deque()
        self.running: list[EngineRequest] = []
        # One block is vLLM's null block and is never handed out.
        self.free_blocks = limits.kv_blocks - 1

    def submit(self, request: EngineRequest) -> None:
        request.arrived_s = self._loop.time()
        self.waiting.append(request)
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
        self._handle = self._loop.call_at(self._step_end_s, self._finish_step, batch, tokens)

    def _schedule(self) -> Batch:
        batch: Batch = []
        budget = self._limits.max_num_batched_tokens
        preempted = False
        i = 0
        while i < len(self.running) and budget > 0:
            request = self.running[i]
            n = min(request.prompt_tokens + request.generated - request.computed, budget)
            while not self._reserve(request, n):
                preempted = True
                if self._preempt_last() is request:
                    return batch
            batch.append((request, n))
            budget -= n
            i += 1
        if not preempted:
            self._admit(batch, budget)
        return batch

    def _admit(self, batch: Batch, budget: int) -> None:
        now = self._loop.time()
        while self.waiting and budget > 0 and len(self.running) < self._limits.max_num_seqs:
            request = self.waiting[0]
            n = min(request.prompt_tokens + request.generated, budget)
            if not self._reserve(request, n):
                return
            self.waiting.popleft()
            request.state = State.RUNNING
            if request.scheduled_s is None:
                request.scheduled_s = now
                self._metrics.admitted(request.prompt_tokens)
            self.running.append(request)
            batch.append((request, n))
            budget -= n

    def _reserve(self, request: EngineRequest, n: int) -> bool:
        """Takes the blocks that ``n`` more tokens need, or none of them."""
        missing = -(-(request.computed + n) // self._limits.block_size) - request.blocks
        if missing > self.free_blocks:
            return False
        if missing > 0:
            self.free_blocks -= missing
            request.blocks += missing
        return True

    def _preempt_last(self) -> EngineRequest:
        request = self.running.pop()
        self._release(request, State.WAITING)
        request.computed = 0
        request.preemptions += 1
        self._metrics.preemptions.value += 1
        self.waiting.appendleft(request)
        return request

    def _release(self, request: EngineRequest, state: State) -> None:
        self.free_blocks += request.blocks
        request.blocks = 0
        request.state = state

    def _finish_step(self, batch: Batch, tokens: int) -> None:
        now = self._step_end_s
        ended = False
        self._metrics.iteration_tokens.observe(tokens)
        for request, n in batch:
            if request.state is not State.RUNNING:
                continue  # its client left during the step
            request.computed += n
            if request.computed < request.prompt_tokens + request.generated:
                continue  # more of its prompt to come
            request.generated += 1
            self._metrics.token(request, now)
            request.last_token_s = now
            if request.generated >= request.stop_at:
                self._release(request, State.DONE)
                ended = True
                self._metrics.finished(request, now)
                request.sink.token(request.generated, request.stop_reason)
            else:
                request.sink.token(request.generated, None)
        if ended:
            self.running = [r for r in self.running if r.state is State.RUNNING]
        if not self.stopped:
            self._start_step()

    def _show_queue(self) -> None:
        usable = max(1, self._limits.kv_blocks - 1)
        self._metrics.show_queue(len(self.running), len(self.waiting), 1 - self.free_blocks / usable)
