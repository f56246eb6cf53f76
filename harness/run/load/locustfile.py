"""The locustfile of every run: one user that sends a planned schedule, open loop.

Locust gives the process, the web page when a person wants one, and its way of stopping; what is judged later are our
own records. Locust's statistics get one row per request, of type ``LLM``.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import gevent  # type: ignore[import-untyped]  # ships no types
from gevent import socket
from locust import User, task

from harness.clock import NS_PER_MS, RunClock
from harness.errors import HarnessError
from harness.history.tables import Outcome
from harness.run.load.api import Api
from harness.run.load.client import ChatClient
from harness.run.load.openloop import EndRow, OpenLoop
from harness.run.load.prompts import Bodies
from harness.run.load.records import Records
from harness.run.load.settings import LoadSettings, read_arrivals
from harness.run.load.wire import Wire
from harness.run.parent import parent_fd

_EXIT_AT_MOST_S = 1.5
_DID_ITS_JOB, _DID_NOT = 0, 1


class RequestLost(Exception):
    """Locust's word for a request that did not end well."""


def _build(environment: Any) -> tuple[OpenLoop, Callable[[], int | None]]:
    settings = LoadSettings.from_env()
    clock = RunClock(settings.start_ns)

    def fire(row: EndRow, received_bytes: int) -> None:
        ok = row["outcome"] in (Outcome.OK, Outcome.ABORTED_BY_CLIENT)  # a client that hung up by plan is no failure
        environment.events.request.fire(
            request_type="LLM",
            name="chat",
            response_time=(row["end_ns"] - row["intended_ns"]) / NS_PER_MS,
            response_length=received_bytes,
            exception=None if ok else RequestLost(row["outcome"]),
            context={},
        )

    def wait_for_go() -> int | None:
        try:
            text = settings.go.read_text()
        except FileNotFoundError:
            return None
        return int(text) if text.strip() else None

    wire = Wire(clock)
    gevent.spawn(wire.run)
    loop = OpenLoop(
        read_arrivals(settings.schedule),
        ChatClient(Api(settings.url, settings.model), settings.send, clock, wire, request_id_prefix=str(settings.seed)),
        Bodies(settings.model, settings.seed),
        Records(settings.records),
        clock,
        settings.send.deadline_s,
        fire,
    )
    return loop, wait_for_go


try:
    LoadSettings.from_env()
except HarnessError as error:
    # Found here, before Locust has set anything up, so that a person sees one message and no traceback.
    print(f"gpu-harness: {error}", file=sys.stderr)
    raise SystemExit(int(error.exit_code)) from None


class Dispatcher(User):
    """The only user: it is the generator itself, so there is exactly one of it however many users are asked for."""

    fixed_count = 1

    @task
    def send_the_schedule(self) -> None:
        environment = self.environment
        environment.process_exit_code = _DID_NOT
        try:
            loop, wait_for_go = _build(environment)
            _stop_with(environment, loop)
            gc.collect()
            gc.freeze()  # what the imports left is never garbage, and looking through it again would delay sends
            loop.run(wait_for_go)
            environment.process_exit_code = _DID_ITS_JOB
        except HarnessError as error:
            print(f"gpu-harness: {error}", file=sys.stderr)
            environment.process_exit_code = int(error.exit_code)
        except Exception:
            # Locust would log it and start the task, and so the whole schedule, once more.
            logging.exception("the load failed")
        environment.runner.quit()


def _stop_with(environment: Any, loop: OpenLoop) -> None:
    """On SIGTERM (Locust fires ``quitting``) and when the harness is gone, the account is closed before the exit."""

    def stop(reason: str) -> None:
        if not loop.finished:
            loop.stop(reason)
            environment.process_exit_code = _DID_ITS_JOB
            # The records are whole, so nothing is lost should Locust's own shutdown hang.
            gevent.spawn_later(_EXIT_AT_MOST_S, os._exit, _DID_ITS_JOB)

    def on_quitting(**_: Any) -> None:
        stop("the load was told to stop")

    def watch_parent(fd: int) -> None:
        socket.wait_read(fd)
        while os.read(fd, 4096):
            socket.wait_read(fd)
        stop("the harness that started it is gone")
        environment.runner.quit()

    environment.events.quitting.add_listener(on_quitting)
    if (fd := parent_fd()) is not None:
        gevent.spawn(watch_parent, fd)
