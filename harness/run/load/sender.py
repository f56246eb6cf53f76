"""What one load process is made of."""

from __future__ import annotations

from collections.abc import Callable

import gevent  # type: ignore[import-untyped]  # ships no types

from harness.clock import RunClock
from harness.run.load.client import ChatClient
from harness.run.load.openloop import EndRow, OpenLoop
from harness.run.load.prompts import Bodies
from harness.run.load.records import Records
from harness.run.load.settings import LoadSettings, read_arrivals
from harness.run.load.wire import Wire


def make_sender(settings: LoadSettings, on_end: Callable[[EndRow, int], None]) -> OpenLoop:
    """An open loop over this process' share, with its wire running. Raises BadInput for what cannot be sent."""
    clock = RunClock(settings.start_ns)
    wire = Wire(clock)
    client = ChatClient(settings.api, settings.send, clock, wire, request_id_prefix=str(settings.seed))
    loop = OpenLoop(
        read_arrivals(settings.schedule, settings.share),
        client,
        Bodies(settings.api.model, settings.seed, settings.api.flavour),
        Records(settings.records, secret=settings.api.key()),
        clock,
        settings.send.deadline_s,
        on_end,
        retry_reset_reused=settings.retry_reset_reused,
    )
    gevent.spawn(wire.run)
    return loop
