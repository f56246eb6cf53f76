"""What a hollow kubelet asks of a container runtime, and the plainest container: a process that waits for SIGTERM.

A ``Container`` is one process of one container. A restart is a new ``Container`` from ``Runtime.create``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from fakes.timing import Timing
from harness.kube.port import Json

EXIT_ANNOTATION = "gpu-harness.dev/exit-s"
SIGKILL_CODE = 137


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

    async def probe(self, path: str) -> int | None:
        """The HTTP status of a GET of ``path``, None when the connection was refused or cut."""
        ...


class Runtime(Protocol):
    async def create(self, pod: Json, container: Json) -> Container:
        """Starts the process of ``container`` (an entry of ``pod["spec"]["containers"]``)."""
        ...


CreateContainer = Callable[[Json, Json], Awaitable[Container]]


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

    async def probe(self, path: str) -> int | None:
        return None

    def _exit(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)


class ImageRuntime:
    """Chooses by image: the first key of ``by_image`` that the image's name contains; else a ``PlainContainer``."""

    def __init__(self, timing: Timing, by_image: Mapping[str, CreateContainer]) -> None:
        self._timing = timing
        self._by_image = by_image

    async def create(self, pod: Json, container: Json) -> Container:
        image = str(container.get("image", ""))
        for part, create in self._by_image.items():
            if part in image:
                return await create(pod, container)
        return PlainContainer(pod, self._timing)
