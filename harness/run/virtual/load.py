"""The planned load in virtual time: each arrival goes straight into the gateway at its moment, open loop.

It writes the same records as the load process. What Locust's client learns from bytes it learns here from calls; the
facts, the limits and the outcome are the same code.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from fakes.gateway.local import LocalEntry
from harness.clock import NS_PER_MS, NS_PER_S
from harness.errors import InternalError, TargetError
from harness.faults.undo import ResumeLoad, Undo
from harness.run.load.arrival import Arrival
from harness.run.load.exchange import Exchange
from harness.run.load.limits import SendLimits, next_limit
from harness.run.load.outcome import Ending
from harness.run.load.prompts import Bodies
from harness.run.load.records import Records, end_row, held_row
from harness.run.load.stream import Meaning, Usage, interpret_whole
from harness.run.load.turns import Turns
from harness.run.tail import LATELY, NO_LOSS
from harness.run.virtual.loop import VirtualClock

_DRAIN_SLACK_S = 2.0
_TOKEN = Meaning(content=True)
_DONE = Meaning(done=True)


class VirtualLoad:
    """``run`` returns when the last exchange has ended. Its dispatcher can be stopped for a while (``LoadControl``)."""

    def __init__(
        self,
        arrivals: Sequence[Arrival],
        entry: LocalEntry,
        bodies: Bodies,
        records: Records,
        clock: VirtualClock,
        limits: SendLimits,
        seed: int,
    ) -> None:
        self._arrivals = arrivals
        self._entry = entry
        self._bodies = bodies
        self._records = records
        self._clock = clock
        self._limits = limits
        self._seed = seed
        self._in_flight: dict[int, tuple[Exchange, Arrival, int]] = {}
        self._sending: dict[asyncio.Task[None], None] = {}
        self._turns = Turns()
        """Sessions with a turn in flight, and those in which a turn could not be sent."""
        self._going = asyncio.Event()
        self._going.set()
        self._lately: deque[tuple[int, bool]] = deque(maxlen=LATELY)
        self._paused_ns: int | None = None
        self._gap_ns = 0
        self.finished = False

    async def run(self, load_start_ns: int) -> None:
        self._records.ready(self._clock.now_ns())
        health = asyncio.create_task(self._health(), name="load health")
        try:
            for arrival in self._arrivals:
                intended_ns = load_start_ns + arrival.t_ns
                await self._sleep_until(intended_ns)
                await self._going.wait()
                if self._held(arrival, intended_ns):
                    continue
                task = asyncio.create_task(self._send(arrival, intended_ns), name=f"request {arrival.request_id}")
                self._sending[task] = None
                task.add_done_callback(lambda done: self._sending.pop(done, None))
            if self._sending:
                # Each exchange ends by its own deadline; what should outlive it is ended here.
                await asyncio.wait(list(self._sending), timeout=self._limits.deadline_s + _DRAIN_SLACK_S)
            self.stop("the load's time was over")
        finally:
            health.cancel()

    def stop(self, reason: str) -> None:
        """Ends all exchanges in flight as unfinished and closes the account."""
        if self.finished:
            return
        self.finished = True
        now_ns = self._clock.now_ns()
        for exchange, arrival, intended_ns in list(self._in_flight.values()):
            exchange.finish(Ending.STOPPED, now_ns, reason)
            self._end(exchange, arrival, intended_ns)
        for task in list(self._sending):
            task.cancel()
        self._records.finished(now_ns)

    def close(self) -> None:
        """Closes the records, once it has finished."""
        self._records.close()

    def ended_since(self, since_ns: int) -> tuple[int, int]:
        """Of the last requests that ended: how many since then, and how many of them not ok."""
        lately = [ok for t_ns, ok in self._lately if t_ns >= since_ns]
        return len(lately), lately.count(False)

    # LoadControl.

    def resume_undo(self) -> Undo:
        if self.finished:
            raise TargetError("the load has ended already")
        return ResumeLoad()

    def pause(self) -> None:
        self._going.clear()
        self._paused_ns = self._clock.now_ns()

    def paused(self) -> str | None:
        return None if self._going.is_set() else "the dispatcher of the load stands still"

    def resume(self, undo: Undo) -> str:
        if not isinstance(undo, ResumeLoad):
            raise InternalError(f"pause_load cannot undo {undo.kind} in virtual time")
        if self._paused_ns is None:
            return "the load was running, nothing to resume"
        self._gap_ns = max(self._gap_ns, self._clock.now_ns() - self._paused_ns)
        self._paused_ns = None
        self._going.set()
        return "the dispatcher of the load was resumed"

    # Requests.

    def _held(self, arrival: Arrival, intended_ns: int) -> bool:
        """A turn that must not be sent is recorded as such."""
        if self._turns.begin(arrival.session):
            return False
        self._records.end(held_row(arrival, intended_ns, self._clock.now_ns()))
        return True

    async def _sleep_until(self, t_ns: int) -> None:
        if (wait_ns := t_ns - self._clock.now_ns()) > 0:
            await asyncio.sleep(wait_ns / NS_PER_S)

    async def _send(self, arrival: Arrival, intended_ns: int) -> None:
        body = self._bodies.of(arrival)
        sent_ns = self._clock.now_ns()
        exchange = Exchange.of(arrival, sent_ns)
        exchange.connected_ns = sent_ns
        self._in_flight[arrival.request_id] = (exchange, arrival, intended_ns)
        self._records.sent(arrival.request_id, sent_ns)
        try:
            await self._converse(exchange, body)
        finally:
            exchange.finish(Ending.FAILED, self._clock.now_ns(), "the client gave up on an error of its own")
            self._end(exchange, arrival, intended_ns)

    async def _converse(self, exchange: Exchange, body: bytes) -> None:
        left = asyncio.Event()
        client = _Client(exchange, self._clock, left.set)
        leaving = asyncio.ensure_future(left.wait())
        call = asyncio.ensure_future(self._entry.chat(body, f"{self._seed}-{exchange.request_id}", client))
        try:
            while not call.done():
                until_ns, ending, limit_s = next_limit(exchange, self._limits)
                wait_ns = until_ns - self._clock.now_ns()
                if wait_ns <= 0:
                    exchange.finish(ending, self._clock.now_ns(), f"waited {limit_s:g} s")
                    return
                # Never for longer than the shortest limit: with the first token the next limit may come nearer.
                longest_s = min(wait_ns / NS_PER_S, self._limits.stall_timeout_s)
                await asyncio.wait([call, leaving], timeout=longest_s, return_when=asyncio.FIRST_COMPLETED)
                if leaving.done():
                    return
            self._finish(exchange, call)
        finally:
            leaving.cancel()
            call.cancel()

    def _finish(self, exchange: Exchange, call: asyncio.Future[None]) -> None:
        error = call.exception()
        if isinstance(error, ConnectionResetError):
            exchange.finish(Ending.RESET, self._clock.now_ns(), "Connection reset by peer")
        elif error is not None:
            raise error
        exchange.finish(Ending.COMPLETE, self._clock.now_ns())

    def _end(self, exchange: Exchange, arrival: Arrival, intended_ns: int) -> None:
        if self._in_flight.pop(exchange.request_id, None) is None:
            return  # ended already, by ``stop``
        self._turns.end(arrival.session)
        row = end_row(exchange, arrival, intended_ns)
        self._records.end(row)
        self._lately.append((self._clock.now_ns(), row["outcome"] in NO_LOSS))

    async def _health(self) -> None:
        """Once a second, but for seconds in which it stood still. No CPU is measured: its time is not this time."""
        while True:
            await asyncio.sleep(1.0)
            await self._going.wait()
            self._records.health(self._clock.now_ns(), 0.0, self._gap_ns / NS_PER_MS, len(self._in_flight))
            self._gap_ns = 0


class _Client:
    """What the gateway says, as facts of one exchange; each event is stamped when it comes. ``leave`` is called when
    the client hangs up by plan."""

    __slots__ = ("_clock", "_exchange", "_leave")

    def __init__(self, exchange: Exchange, clock: VirtualClock, leave: Callable[[], None]) -> None:
        self._exchange = exchange
        self._clock = clock
        self._leave = leave

    def head(self, status: int, pod: str, node: str) -> None:
        exchange = self._exchange
        exchange.headers_ns = self._clock.now_ns()
        exchange.facts.status = status
        exchange.facts.event_stream = status == 200 and exchange.facts.stream
        exchange.pod, exchange.node = pod or None, node or None

    def body(self, body: bytes) -> None:
        facts = self._exchange.facts
        if facts.status == 200 and not facts.stream:
            facts.take(interpret_whole(body))
        else:
            facts.body = body.decode("utf-8", "replace")

    def token(self) -> None:
        now_ns = self._take(_TOKEN)
        if self._exchange.hang_up_tokens and (why := self._exchange.hangs_up(now_ns)) is not None:
            self._exchange.finish(Ending.HUNG_UP, now_ns, why)
            self._leave()

    def last(self, finish: str, *, with_text: bool, usage: tuple[int, int] | None) -> None:
        self._take(Meaning(content=with_text, finish_reason=finish))
        if usage is not None:
            self._take(Meaning(usage=Usage(*usage)))
        self._take(_DONE)

    def error(self, message: str, type: str, status: int) -> None:
        self._take(Meaning(error=f"{type}: {message}", error_code=status))
        self._take(_DONE)

    def _take(self, meaning: Meaning) -> int:
        now_ns = self._clock.now_ns()
        if self._exchange.facts.ending is None:
            self._exchange.take(meaning, now_ns)
        return now_ns
