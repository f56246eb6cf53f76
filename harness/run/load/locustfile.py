"""The locustfile of every run, and of people who start Locust themselves: a planned schedule, sent open loop.

Locust gives the process, the web page when a person wants one, its distribution over processes, and its way of
stopping; what is judged later are our own records. Locust's statistics get one row per request, of type ``LLM``.

The schedule goes out once per process and test, however many users are asked for: each process sends its share.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from typing import Any

import gevent  # type: ignore[import-untyped]  # ships no types
from gevent import socket
from locust import User, events, task
from locust.runners import MasterRunner, WorkerRunner

from harness.clock import NS_PER_MS
from harness.errors import HarnessError
from harness.history.tables import Outcome
from harness.processes.parent import parent_fd
from harness.run.load import standalone
from harness.run.load.openloop import EndRow, OpenLoop
from harness.run.load.sender import make_sender
from harness.run.load.settings import LOAD_ENV, LoadSettings, Share

_GC_EVERY = 20_000
"""Objects more than before; Python looks for cycles after 700."""
_EXIT_AT_MOST_S = 1.5
_DID_ITS_JOB, _DID_NOT = 0, 1
_SHARE = "gpu-harness-share"


class RequestLost(Exception):
    """Locust's word for a request that did not end well."""


class Arrivals(User):
    """Locust wants users. The schedule says who comes when, so this one only shows that the test runs."""

    @task
    def look_on(self) -> None:
        gevent.sleep(1)


if os.environ.get(LOAD_ENV):
    try:
        LoadSettings.from_env()
    except HarnessError as error:
        # Found here, before Locust has set anything up, so that a person sees one message and no traceback.
        print(f"gpu-harness: {error}", file=sys.stderr)
        raise SystemExit(int(error.exit_code)) from None
else:
    standalone.add_options(events)


def _prepare(environment: Any, **_: Any) -> None:
    if os.environ.get(LOAD_ENV):
        _stop_with_the_harness(environment)
        return
    try:
        standalone.check(environment.parsed_options, environment.host)
    except HarnessError as error:
        print(f"gpu-harness: {error}", file=sys.stderr, flush=True)
        os._exit(int(error.exit_code))  # Locust would show whatever is raised here as a traceback, and go on
    if isinstance(environment.runner, WorkerRunner):
        environment.runner.register_message(_SHARE, lambda msg, **_: _begin(environment, Share(**msg.data)))


def _on_test_start(environment: Any, **_: Any) -> None:
    runner = environment.runner
    if isinstance(runner, MasterRunner):
        workers = [client.id for client in runner.clients.ready]
        for index, client_id in enumerate(workers):
            runner.send_message(_SHARE, {"index": index, "of": len(workers)}, client_id)
    elif not isinstance(runner, WorkerRunner):
        _begin(environment, None)


def _begin(environment: Any, share: Share | None) -> None:
    """A worker is told its share by the master; one that joins later has none, and sends nothing."""
    gevent.spawn(_send_the_schedule, environment, share)


def _send_the_schedule(environment: Any, share: Share | None) -> None:
    environment.process_exit_code = _DID_NOT
    try:
        if os.environ.get(LOAD_ENV):
            settings = LoadSettings.from_env()
        else:
            told = environment.parsed_options, environment.host, share or Share()
            # In a thread: a worker that says nothing for three seconds is taken for dead by its master.
            settings = gevent.get_hub().threadpool.apply(standalone.settings, told)
        loop = make_sender(settings, lambda row, received_bytes: _tell_locust(environment, row, received_bytes))
        _stop_with(environment, loop)
        gc.collect()
        gc.freeze()  # what the imports left is never garbage, and looking through it again would delay sends
        gc.set_threshold(_GC_EVERY, 50, 50)  # a token leaves nothing behind, but its tuples count as if it did
        loop.run(settings.begins_ns)
        environment.process_exit_code = _DID_ITS_JOB
    except HarnessError as error:
        print(f"gpu-harness: {error}", file=sys.stderr)
        environment.process_exit_code = int(error.exit_code)
    except Exception:
        logging.exception("the load failed")
    if environment.web_ui is None:
        environment.runner.quit()
    else:
        environment.runner.stop()


def _tell_locust(environment: Any, row: EndRow, received_bytes: int) -> None:
    ok = row["outcome"] in (Outcome.OK, Outcome.ABORTED_BY_CLIENT)  # a client that hung up by plan is no failure
    environment.events.request.fire(
        request_type="LLM",
        name="chat",
        response_time=(row["end_ns"] - row["intended_ns"]) / NS_PER_MS,
        response_length=received_bytes,
        exception=None if ok else RequestLost(row["outcome"]),
        context={},
    )


def _stop_with(environment: Any, loop: OpenLoop) -> None:
    """On SIGTERM (Locust fires ``quitting``) and at the end of a test the account is closed before the exit."""

    def on_test_stop(**_: Any) -> None:
        loop.stop("the test was stopped")

    def on_quitting(**_: Any) -> None:
        if not loop.finished:
            loop.stop("the load was told to stop")
            environment.process_exit_code = _DID_ITS_JOB
            # The records are whole, so nothing is lost should Locust's own shutdown hang.
            gevent.spawn_later(_EXIT_AT_MOST_S, os._exit, _DID_ITS_JOB)

    environment.events.test_stop.add_listener(on_test_stop)
    environment.events.quitting.add_listener(on_quitting)


def _stop_with_the_harness(environment: Any) -> None:
    """Nothing outlives its parent."""

    def watch_parent(fd: int) -> None:
        socket.wait_read(fd)
        while os.read(fd, 4096):
            socket.wait_read(fd)
        environment.process_exit_code = _DID_ITS_JOB
        environment.runner.quit()

    if (fd := parent_fd()) is not None:
        gevent.spawn(watch_parent, fd)


_hooks: Any = events
_hooks.init.add_listener(_prepare)
_hooks.test_start.add_listener(_on_test_start)
