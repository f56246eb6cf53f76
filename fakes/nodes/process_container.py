"""A container that is a real process of this machine: a real model server as a pod of a hollow node.

Its image's name says which command runs. It gets a free port of 127.0.0.1, its probes are real HTTP requests to that
port, SIGTERM reaches its first process, SIGKILL and SIGSTOP (its machine stands still) all that it started, and what it
prints is the container's log.
Real processes know no other time than the machine's: a world with them has a time_scale of 1 and no virtual time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Sequence

from fakes.config import ProcessImage
from fakes.nodes.logs import Say
from fakes.nodes.process_guard import FREEZE, THAW
from fakes.nodes.runtime import NO_ANSWER, SIGKILL_CODE
from harness.kube.port import Json

HOST = "127.0.0.1"
PROBE_TIMEOUT_S = 30.0
"""The probe's own timeout is shorter; this one only keeps connections from piling up."""
LINE_BYTES_MAX = 1 << 20
PORT, ARGS, POD, ADDRESS = "{port}", "{args}", "{pod}", "{host}"


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        port: int = sock.getsockname()[1]
        return port


def command_line(template: Sequence[str], args: Sequence[str], *, port: int, pod: str, host: str = HOST) -> list[str]:
    """``{args}`` stands for all words of the container's own command line, the others for themselves."""
    words: list[str] = []
    for word in template:
        words += args if word == ARGS else [word.replace(PORT, str(port)).replace(POD, pod).replace(ADDRESS, host)]
    return words


class ProcessContainer:
    """``start`` raises OSError when there is no such program."""

    def __init__(self, pod: Json, container: Json, image: ProcessImage, say: Say) -> None:
        self._say = say
        self._port = free_port()
        name = str(pod["metadata"]["name"])
        args = [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
        self._argv = command_line(image.command, args, port=self._port, pod=name)
        given = {e["name"]: str(e.get("value", "")) for e in container.get("env") or () if "valueFrom" not in e}
        self._env = {**os.environ, **dict(image.env), **given}
        self._pipe: int | None = None
        self._killed = False
        self._guard: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def start(self) -> None:
        reading, self._pipe = os.pipe()
        guard = [sys.executable, "-m", "fakes.nodes.process_guard", str(reading), *self._argv]
        try:
            self._guard = await asyncio.create_subprocess_exec(
                *guard,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=self._env,
                pass_fds=(reading,),
                start_new_session=True,
                limit=LINE_BYTES_MAX,
            )
        finally:
            os.close(reading)
        self._watching = asyncio.create_task(self._watch(self._guard), name=f"process on port {self._port}")

    @property
    def address(self) -> tuple[str, int] | None:
        return HOST, self._port

    @property
    def pid(self) -> int | None:
        """Of the guard, whose child the program is."""
        return self._guard.pid if self._guard is not None else None

    def terminate(self) -> None:
        if self._guard is not None and self._guard.returncode is None:
            # Its own send_signal takes the exit code of one that has just ended away from who waits for it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._guard.pid, signal.SIGTERM)

    def kill(self) -> None:
        self._killed = True
        self._close_pipe()

    def freeze(self) -> None:
        """Connections stay open and are taken by the kernel, and nothing comes."""
        self._order(FREEZE)

    def thaw(self) -> None:
        self._order(THAW)

    async def wait(self) -> int:
        return await asyncio.shield(self._code)

    def probe(self, path: str) -> Awaitable[int | None]:
        return self._get(path)

    async def _get(self, path: str) -> int | None:
        try:
            reader, writer = await asyncio.open_connection(HOST, self._port)
        except OSError:
            return None
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                status = await reader.readline()
            return int(status.split()[1])
        except TimeoutError:
            return NO_ANSWER
        except (OSError, ValueError, IndexError):
            return None
        finally:
            writer.close()

    async def _watch(self, guard: asyncio.subprocess.Process) -> None:
        assert guard.stdout is not None
        try:
            while True:
                try:
                    line = await guard.stdout.readline()
                except ValueError:
                    continue  # longer than any line of a log should be
                if not line:
                    break
                self._say(line.decode(errors="replace").rstrip("\r\n"))
            code = await guard.wait()
        finally:
            self._close_pipe()
        if not self._code.done():
            self._code.set_result(SIGKILL_CODE if self._killed else code)

    def _order(self, order: bytes) -> None:
        if self._pipe is not None:
            with contextlib.suppress(BrokenPipeError):  # its guard has just ended
                os.write(self._pipe, order)

    def _close_pipe(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
