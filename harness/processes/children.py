"""Child processes: each in a session of its own, holding a pipe to us, its words kept in a log."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.processes.parent import PARENT_FD_ENV

LAST_LINES = 12


@dataclass(slots=True)
class Child:
    """One started process. It leads its own session, so a Ctrl-C in our terminal reaches it only through us."""

    name: str
    process: asyncio.subprocess.Process
    log: Path
    _pipe: int | None

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        return self.process.returncode

    async def wait(self) -> int:
        return await self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        send_signal(self.process, number)

    async def stop(self, grace_s: float) -> int:
        """One SIGTERM, ``grace_s`` clock seconds to obey, then SIGKILL for its whole process group. Idempotent."""
        if self.returncode is None:
            self.signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(grace_s):
                    await self.wait()
            except TimeoutError:
                self.kill()
        code = await self.wait()
        self.kill()  # whatever it left behind in its group
        self._close_pipe()
        return code

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def last_lines(self, count: int = LAST_LINES) -> list[str]:
        """Its last words, for an error that shows why it died."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return []
        return [line for line in lines if line.strip()][-count:]

    def how_it_ended(self) -> str:
        code = self.returncode
        if code is None:
            return f"{self.name} is running"
        if code < 0:
            return f"{self.name} was killed by {signal.Signals(-code).name}"
        return f"{self.name} exited with code {code}"

    def _close_pipe(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None


def send_signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """To a process that may have ended just now. Its own ``send_signal`` asks the system first how it is, which takes
    the exit code away from who waits for it: what was killed then "exited with code 255"."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


async def spawn(name: str, argv: Sequence[str], *, env: Mapping[str, str], log: Path, cwd: Path | None = None) -> Child:
    """Starts ``argv`` with ``env`` on top of ours. Its parent pipe closes when we end, however we do."""
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)
    try:
        with log.open("ab") as out:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, **env, PARENT_FD_ENV: str(reading)},
                pass_fds=(reading,),
                start_new_session=True,
                cwd=cwd,
            )
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return Child(name, process, log, writing)
