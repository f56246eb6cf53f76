"""Completions, whatever way they came in: what is refused, what is queued, and which answers are under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from fakes.clock import WallClock
from fakes.vllm.blocks import block_hashes
from fakes.vllm.engine import Engine, EngineRequest
from fakes.vllm.flags import ServerFlags
from fakes.vllm.ledger import Ledger, LedgerEntry
from fakes.vllm.metrics import EngineMetrics
from fakes.vllm.mischief import NONE, Mischief
from fakes.vllm.replies import ENGINE_DEAD, LEFT, Reply, StreamOut, StreamReply, WholeReply
from fakes.vllm.requests import CompletionRequest, RequestRefused, parse_request
from fakes.vllm.sse import whole_body

BUSY = "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance."
BACKLOG = "The engine has reached its prefill token backlog limit. Please try again later or on a different instance."
FAILED = "EngineCore encountered an issue."
DRAINING = "cannot schedule new futures after shutdown"


class Completions:
    """``on_idle`` is called whenever the last request in progress has ended, ``on_begun`` with each that begins."""

    def __init__(
        self,
        flags: ServerFlags,
        engine: Engine,
        metrics: EngineMetrics,
        *,
        ledger: Ledger,
        rng: Random,
        wall: WallClock,
        on_idle: Callable[[], None],
        on_begun: Callable[[], None] = lambda: None,
        mischief: Mischief = NONE,
    ) -> None:
        self.flags = flags
        self.metrics = metrics
        self._engine = engine
        self._ledger = ledger
        self._rng = rng
        self._wall = wall
        self._on_idle = on_idle
        self._on_begun = on_begun
        self._mischief = mischief
        self.started_unix = self.unix_now()
        self.draining = False
        self.dead = False
        """Its engine has died; the process is about to follow."""
        self.silent = False
        """The process stands still: who asks is not answered."""
        self.metrics_fail = False
        """Who asks for its metrics gets an error; it serves on."""
        self.replies: dict[Reply, None] = {}
        """In the order of their beginning, so that a seed decides in which order they end when the server dies."""

    def accept(self, body: bytes, *, chat: bool) -> CompletionRequest:
        """Raises ``RequestRefused``."""
        if self.dead:
            raise RequestRefused(500, "InternalServerError", ENGINE_DEAD)
        if self.draining:
            raise RequestRefused(500, "InternalServerError", DRAINING)
        if self._mischief.fails():
            raise RequestRefused(500, "InternalServerError", FAILED)
        names, limit = self.flags.names, self.flags.max_model_len
        request = parse_request(body, chat=chat, names=names, max_model_len=limit)
        self._check_queue(request.n)
        return request

    async def unless_silent(self) -> None:
        """Comes back at once, or never."""
        if self.silent:
            await asyncio.Event().wait()

    def header_id(self, given: str | None) -> str:
        """What ``X-Request-Id`` of an answer says, where the server is told to say it."""
        return given or f"{self._rng.getrandbits(128):032x}"

    def name(self, given: str | None, *, chat: bool) -> str:
        """The id a request is answered with."""
        return f"{'chatcmpl' if chat else 'cmpl'}-{given or f'{self._rng.getrandbits(64):016x}'}"

    def unix_now(self) -> int:
        return int(self._wall.now().timestamp())

    async def stream(self, request: CompletionRequest, id: str, out: StreamOut) -> None:
        """After the headers. If the client leaves first, this is cancelled and the slot is freed."""
        if self.flags.limits_queue:
            # A queue limit is looked at twice. Of requests that came together, some find it full only now, when the
            # status has been sent.
            await asyncio.sleep(0)
            try:
                self._check_queue(request.n)
            except RequestRefused as refused:
                out.error(refused.message, refused.type, refused.status)
                return
        entry = self._ledger.open(id, request.prompt_tokens)
        await self._run(request, id, entry, StreamReply(out, entry, request.n))

    async def whole(self, request: CompletionRequest, id: str) -> bytes:
        """The body of the answer."""
        entry = self._ledger.open(id, request.prompt_tokens)
        created = self.unix_now()
        reply = WholeReply(entry, request.n)
        await self._run(request, id, entry, reply)
        return whole_body(request, id, created, reply.ended.result().choices)

    def _check_queue(self, choices: int) -> None:
        busy_at = self._mischief.busy_at
        if busy_at is not None and self._engine.in_flight >= busy_at:
            raise RequestRefused(429, "Too Many Requests", BUSY)
        limit = self.flags.max_num_queued_reqs
        if limit is not None and self._engine.in_flight + choices > limit:
            self.metrics.rejected["max_num_queued_reqs"].value += 1
            raise RequestRefused(503, "Service Unavailable", BUSY)
        limit = self.flags.max_num_queued_tokens
        if limit is not None and self._engine.prefill_tokens() >= limit:
            self.metrics.rejected["max_num_queued_tokens"].value += 1
            raise RequestRefused(503, "Service Unavailable", BACKLOG)

    async def _run(self, request: CompletionRequest, id: str, entry: LedgerEntry, reply: Reply) -> None:
        if late_s := self._mischief.held_back_s(request.prompt_tokens, request.priority):
            await asyncio.sleep(late_s)
        jobs = self._jobs(request, id, reply)
        self.replies[reply] = None
        self._on_begun()
        for job in jobs:
            self._engine.submit(job)
        try:
            ended = await reply.ended
            if not self._engine.stopped:
                self.metrics.all_choices_finished(request.n, max(tokens for tokens, _ in ended.choices))
        except asyncio.CancelledError:
            if entry.finish is None and not self._engine.stopped:
                entry.finish = LEFT
                for job in jobs:
                    self._engine.abort(job)
            raise
        finally:
            self.replies.pop(reply, None)
            self._ledger.close(id, entry)
            if not self.replies:
                self._on_idle()

    def _jobs(self, request: CompletionRequest, id: str, reply: Reply) -> list[EngineRequest]:
        caching = self._engine.limits.prefix_caching
        hashes = block_hashes(request.prompt, self._engine.limits.block_size) if caching else ()
        return [
            EngineRequest(
                id if request.n == 1 else f"{choice}_{id}",
                request.prompt_tokens,
                request.stop_at,
                request.stop_reason,
                request.max_tokens,
                sink,
                hashes,
                request.priority,
            )
            for choice, sink in enumerate(reply.sinks)
        ]
