"""What a hollow kubelet asks of a container runtime, and the plainest container: a process that waits for SIGTERM.

A ``Container`` is one process of one container. A restart is a new ``Container`` from ``Runtime.create``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from fakes.nodes.logs import Say
from fakes.timing import Timing
from harness.kube.port import Json

EXIT_ANNOTATION = "gpu-harness.dev/exit-s"
START_ERROR_ANNOTATION = "gpu-harness.dev/start-error"
"""What the container runtime says instead of starting the container."""
SIGKILL_CODE = 137
NO_ANSWER = -1
"""A probe's connection was taken, and nothing came back on it."""


class Container(Protocol):
    """A process. It runs from the moment ``Runtime.create`` returns it until ``wait`` returns."""

    @property
    def address(self) -> tuple[str, int] | None:
        """Where it listens, or will listen: the port is reserved from the start, though connections may be refused.
        None when it serves nothing."""
        ...

    def terminate(self) -> None:
        """SIGTERM. May be sent more than once, and after the end."""
        ...

    def kill(self) -> None:
        """SIGKILL: its sockets are reset at once, streams end in the middle. May be sent more than once."""
        ...

    async def wait(self) -> int:
        """The exit code, as soon as the process has ended; 137 after ``kill``. Any number of callers may wait."""
        ...

    def probe(self, path: str) -> int | Awaitable[int | None] | None:
        """The HTTP status of a GET of ``path``, None when the connection was refused or cut, ``NO_ANSWER`` when nothing
        came. Whoever knows it at once says so at once: a thousand pods are probed each few seconds."""
        ...


class Runtime(Protocol):
    async def create(self, pod: Json, container: Json, say: Say) -> Container:
        """Starts the process of ``container`` (an entry of ``pod["spec"]["containers"]``); its output goes to ``say``.
        Raises OSError when the runtime cannot."""
        ...


CreateContainer = Callable[[Json, Json, Say], Awaitable[Container]]


class PlainContainer:
    """Serves nothing, runs until SIGTERM, and exits 0 a while later: ``gpu-harness.dev/exit-s`` scenario seconds."""

    def __init__(self, pod: Json, timing: Timing) -> None:
        annotations = pod["metadata"].get("annotations") or {}
        self._exit_after_s = timing.clock_s(float(annotations.get(EXIT_ANNOTATION, 1)))
        self._loop = asyncio.get_running_loop()
        self._code: asyncio.Future[int] = self._loop.create_future()
        self._exiting: asyncio.TimerHandle | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        return None

    def terminate(self) -> None:
        if self._exiting is None and not self._code.done():
            self._exiting = self._loop.call_later(self._exit_after_s, self._exit, 0)

    def kill(self) -> None:
        if self._exiting is not None:
            self._exiting.cancel()
        self._exit(SIGKILL_CODE)

    async def wait(self) -> int:
        return await asyncio.shield(self._code)

    def probe(self, path: str) -> int | None:
        return None

    def _exit(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)
