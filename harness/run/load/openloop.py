"""The open loop: every arrival goes out at its time, whatever the server does, and each one that did gets an end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import gevent  # type: ignore[import-untyped]  # ships no types

from harness.clock import NS_PER_MS, NS_PER_S, RunClock
from harness.run.load.arrival import Arrival
from harness.run.load.client import ChatClient
from harness.run.load.exchange import Exchange
from harness.run.load.outcome import Ending
from harness.run.load.prompts import Bodies
from harness.run.load.records import Records, end_row, held_row
from harness.run.load.turns import Turns

_GO_POLL_S = 0.01
_DRAIN_POLL_S = 0.01
_SENDS_BETWEEN_YIELDS = 10
_PULSE_S = 0.02
_HEALTH_EVERY_NS = NS_PER_S
_DRAIN_SLACK_S = 2.0

EndRow = dict[str, Any]


class OpenLoop:
    """Sends a schedule. ``run`` returns when the last exchange has ended; ``stop`` ends everything at once."""

    def __init__(
        self,
        arrivals: Sequence[Arrival],
        client: ChatClient,
        bodies: Bodies,
        records: Records,
        clock: RunClock,
        deadline_s: float,
        on_end: Callable[[EndRow, int], None],
        *,
        retry_reset_reused: bool = False,
    ) -> None:
        """``on_end`` gets each end row, already recorded, and the bytes received.

        ``retry_reset_reused`` allows one more attempt, recorded, where a kept-alive connection turned out to be
        closed before the server said anything.
        """
        self._arrivals = arrivals
        self._client = client
        self._bodies = bodies
        self._records = records
        self._clock = clock
        self._deadline_s = deadline_s
        self._on_end = on_end
        self._retry_reset_reused = retry_reset_reused
        self._in_flight: dict[int, tuple[Exchange, Arrival, int]] = {}
        self._turns = Turns()
        """Sessions with a turn in flight, and those in which a turn could not be sent."""
        self._health: Any = None
        self.finished = False

    def run(self, wait_for_go: Callable[[], int | None]) -> None:
        """``wait_for_go`` is polled until it gives the history time at which the schedule begins."""
        self._health = gevent.spawn(self._watch_health)
        self._records.ready(self._clock.now_ns())
        while (load_start_ns := wait_for_go()) is None:
            if self.finished:
                return
            gevent.sleep(_GO_POLL_S)
        for count, arrival in enumerate(self._arrivals):
            intended_ns = load_start_ns + arrival.t_ns
            self._sleep_until(intended_ns)
            if self.finished:
                return
            if self._held(arrival, intended_ns):
                continue
            self._send(arrival, intended_ns)
            if count % _SENDS_BETWEEN_YIELDS == 0:
                gevent.sleep(0)  # when behind, sending alone would starve those who wait for their answers
        # Each exchange ends by its own deadline; what should outlive it is ended here.
        last_ns = self._clock.now_ns() + round((self._deadline_s + _DRAIN_SLACK_S) * NS_PER_S)
        while self._in_flight and not self.finished and self._clock.now_ns() < last_ns:
            gevent.sleep(_DRAIN_POLL_S)
        self.stop("the load's time was over")

    def stop(self, reason: str) -> None:
        """Ends all exchanges in flight as unfinished and closes the account. Never yields, so nothing slips in."""
        if self.finished:
            return
        self.finished = True
        now_ns = self._clock.now_ns()
        for exchange, arrival, intended_ns in list(self._in_flight.values()):
            exchange.finish(Ending.STOPPED, now_ns, reason)
            self._end(exchange, arrival, intended_ns)
        self._records.finished(self._clock.now_ns())
        if self._health is not None:
            self._health.kill(block=False)

    def _held(self, arrival: Arrival, intended_ns: int) -> bool:
        """A turn that must not be sent is recorded as such."""
        if self._turns.begin(arrival.session):
            return False
        row = held_row(arrival, intended_ns, self._clock.now_ns())
        self._records.end(row)
        self._on_end(row, 0)
        return True

    def _sleep_until(self, t_ns: int) -> None:
        """Timers of the event loop count from its own, slightly older, now, so one may fire a little early."""
        while not self.finished and (wait_ns := t_ns - self._clock.now_ns()) > 0:
            gevent.sleep(wait_ns / NS_PER_S)

    def _send(self, arrival: Arrival, intended_ns: int) -> None:
        body = self._bodies.of(arrival)
        sent_ns = self._clock.now_ns()
        exchange = Exchange.of(arrival, sent_ns)
        self._in_flight[arrival.request_id] = (exchange, arrival, intended_ns)
        self._records.sent(arrival.request_id, sent_ns)
        self._client.start(exchange, body, self._ended)

    def _ended(self, exchange: Exchange) -> None:
        if (known := self._in_flight.get(exchange.request_id)) is None:
            return  # ended already, by ``stop``
        _, arrival, intended_ns = known
        if self._retry_reset_reused and exchange.met_a_closed_connection and exchange.attempt == 1:
            self._records.attempt(end_row(exchange, arrival, intended_ns))
            again = Exchange.of(arrival, self._clock.now_ns())
            again.attempt = 2
            self._in_flight[arrival.request_id] = (again, arrival, intended_ns)
            self._client.start(again, self._bodies.of(arrival), self._ended, fresh=True)
            return
        self._end(exchange, arrival, intended_ns)

    def _end(self, exchange: Exchange, arrival: Arrival, intended_ns: int) -> None:
        if self._in_flight.pop(exchange.request_id, None) is None:
            return  # ended already, by ``stop``
        self._turns.end(arrival.session)
        row = end_row(exchange, arrival, intended_ns)
        self._records.end(row)
        self._on_end(row, exchange.received_bytes)

    def _watch_health(self) -> None:
        """Once a second: CPU time of this process per second, and the longest time its loop was not served."""
        last_ns, last_cpu_ns, gap_ns = self._clock.now_ns(), time.process_time_ns(), 0
        while not self.finished:
            before_ns = self._clock.now_ns()
            gevent.sleep(_PULSE_S)
            now_ns = self._clock.now_ns()
            gap_ns = max(gap_ns, now_ns - before_ns - round(_PULSE_S * NS_PER_S))
            if now_ns - last_ns >= _HEALTH_EVERY_NS:
                cpu_ns = time.process_time_ns()
                ratio = (cpu_ns - last_cpu_ns) / (now_ns - last_ns)
                self._records.health(now_ns, ratio, gap_ns / NS_PER_MS, len(self._in_flight))
                last_ns, last_cpu_ns, gap_ns = now_ns, cpu_ns, 0
