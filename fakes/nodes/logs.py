"""What the processes of pods said: the lines behind ``kubectl logs``.

Kept per container for its present process and the one before, and bounded in size as a kubelet's rotation bounds them.
Timestamps are the world's wall clock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime

from fakes.clock import WallClock
from fakes.kube.podlogs import NoLogs
from harness.kube.port import Json

BYTES_MAX = 1024 * 1024
"""Of one process; the oldest lines go first. A real kubelet keeps 10 MiB a file."""

Say = Callable[[str], None]
"""Takes one line, without its end, of a process's output."""


@dataclass(slots=True)
class _Output:
    """The lines of one process."""

    lines: deque[tuple[datetime, str]] = field(default_factory=deque)
    size: int = 0
    dropped: int = 0
    ended: bool = False
    more: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, t: datetime, line: str) -> None:
        self.lines.append((t, line))
        self.size += len(line) + 1
        while self.size > BYTES_MAX and len(self.lines) > 1:
            _, gone = self.lines.popleft()
            self.size -= len(gone) + 1
            self.dropped += 1
        self.more.set()

    def end(self) -> None:
        self.ended = True
        self.more.set()


@dataclass(slots=True)
class _Container:
    uid: str
    present: _Output
    previous: _Output | None = None


class PodLogs:
    def __init__(self, wall: WallClock) -> None:
        self._wall = wall
        self._containers: dict[tuple[str, str], dict[str, _Container]] = {}
        """By namespace and name of the pod, then by container."""

    def begin(self, pod: Json, container: str) -> Say:
        """A new process of the container: what the one before it said becomes ``previous``."""
        meta = pod["metadata"]
        uid, output = str(meta["uid"]), _Output()
        containers = self._containers.setdefault((meta["namespace"], meta["name"]), {})
        before = containers.get(container)
        previous = before.present if before is not None and before.uid == uid else None
        containers[container] = _Container(uid, output, previous)

        def say(line: str) -> None:
            now = self._wall.now()
            for part in line.split("\n"):
                output.add(now, part)

        return say

    def end(self, pod: Json, container: str) -> None:
        """The process has ended: whoever follows its output is at the end of it."""
        found = self._containers.get((pod["metadata"]["namespace"], pod["metadata"]["name"]), {}).get(container)
        if found is not None and found.uid == pod["metadata"]["uid"]:
            found.present.end()

    def forget(self, pod: Json) -> None:
        """The pod's object is gone."""
        meta = pod["metadata"]
        containers = self._containers.get((meta["namespace"], meta["name"]), {})
        for name in [n for n, c in containers.items() if c.uid == meta["uid"]]:
            containers.pop(name).present.end()
        if not containers:
            self._containers.pop((meta["namespace"], meta["name"]), None)

    def read(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        previous: bool = False,
        tail_lines: int | None = None,
        since: datetime | None = None,
        timestamps: bool = False,
        limit_bytes: int | None = None,
    ) -> str:
        """Raises ``NoLogs`` for a container that never had a process, or no earlier one."""
        output = self._output(namespace, pod, container, previous)
        lines = [(t, line) for t, line in output.lines if since is None or t >= since]
        if tail_lines is not None:
            lines = lines[-tail_lines:] if tail_lines > 0 else []
        text = "".join(_text(t, line, timestamps) for t, line in lines)
        return text if limit_bytes is None else text.encode()[:limit_bytes].decode(errors="ignore")

    async def follow(self, namespace: str, pod: str, container: str, *, timestamps: bool = False) -> AsyncIterator[str]:
        """The lines that come after those that are there now, until the process ends."""
        output = self._output(namespace, pod, container, False)
        at = output.dropped + len(output.lines)
        while True:
            output.more.clear()
            for t, line in list(output.lines)[max(0, at - output.dropped) :]:
                yield _text(t, line, timestamps)
            at = output.dropped + len(output.lines)
            if output.ended:
                return
            if not output.more.is_set():
                await output.more.wait()

    def _output(self, namespace: str, pod: str, container: str, previous: bool) -> _Output:
        found = self._containers.get((namespace, pod), {}).get(container)
        output = None if found is None else found.previous if previous else found.present
        if output is not None:
            return output
        if previous:
            raise NoLogs(f'previous terminated container "{container}" in pod "{pod}" not found')
        raise NoLogs(f'container "{container}" in pod "{pod}" is waiting to start: ContainerCreating')


def _text(t: datetime, line: str, timestamps: bool) -> str:
    return f"{t.strftime('%Y-%m-%dT%H:%M:%S.%f')}000Z {line}\n" if timestamps else f"{line}\n"
