"""A process of the fakes: servers on free ports, and an end by signal, by time, or with whoever started it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import ssl
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

HOST = "127.0.0.1"
PARENT_FD_ENV = "GPU_HARNESS_PARENT_FD"


def on_loopback() -> socket.socket:
    """Bound to a free port."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.bind((HOST, 0))
    return bound


@dataclass(frozen=True, slots=True)
class Served:
    """An application, and what it says of its own identity where it speaks TLS."""

    app: web.Application
    tls: ssl.SSLContext | None = None


async def serve_while(
    running: Coroutine[Any, Any, None],
    apps: Mapping[str, Served],
    ready: Path,
    ttl_s: float | None,
    bind: Callable[[], socket.socket] = on_loopback,
) -> None:
    """Runs ``running`` beside ``apps`` until a signal, the end of ``ttl_s``, or the parent's end. ``bind`` makes the
    sockets that they are served on.

    ``ready`` is written (atomically) with the URL of each of ``apps``, by its name, once all of them answer.
    """
    stop = asyncio.Event()
    _stop_on(stop, ttl_s)
    task = asyncio.create_task(running)
    task.add_done_callback(lambda _: stop.set())
    runners = {name: await _listen(served, bind()) for name, served in apps.items()}
    urls = {
        name: f"{'https' if apps[name].tls else 'http'}://{HOST}:{runner.addresses[0][1]}"
        for name, runner in runners.items()
    }
    part = ready.with_suffix(".part")
    part.write_text(json.dumps(urls))
    part.rename(ready)
    await stop.wait()
    if task.done():
        await task  # shows why
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await asyncio.gather(*(runner.cleanup() for runner in runners.values()))


async def _listen(served: Served, bound: socket.socket) -> web.AppRunner:
    runner = web.AppRunner(served.app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
    await runner.setup()
    await web.SockSite(runner, bound, ssl_context=served.tls).start()
    return runner


def _stop_on(stop: asyncio.Event, ttl_s: float | None) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if ttl_s is not None:
        loop.call_later(ttl_s, stop.set)
    if fd := os.environ.get(PARENT_FD_ENV):

        def parent_spoke() -> None:
            if not os.read(int(fd), 4096):
                loop.remove_reader(int(fd))
                stop.set()

        loop.add_reader(int(fd), parent_spoke)
