"""A container that runs a shell script, as test pods, jobs and init containers do; and the choice among all kinds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from fakes.nodes.logs import Say
from fakes.nodes.runtime import SIGKILL_CODE, START_ERROR_ANNOTATION, Container, CreateContainer, PlainContainer
from fakes.nodes.shell import Command, NotUnderstood, Run, Shell, parse
from fakes.timing import Timing
from harness.kube.port import Json


class ScriptContainer:
    """Ends with its script. As process 1 it ignores a SIGTERM that it has no trap for, and is killed in the end."""

    def __init__(self, commands: tuple[Command, ...], timing: Timing, say: Say) -> None:
        self.shell = Shell(timing, self._get, say)
        self._run = Run(self.shell, commands)
        self._task = asyncio.ensure_future(self._finish())
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def address(self) -> tuple[str, int] | None:
        return None

    def terminate(self) -> None:
        self._run.terminate()

    def kill(self) -> None:
        self._task.cancel()
        self._exit(SIGKILL_CODE)

    async def wait(self) -> int:
        return await asyncio.shield(self._code)

    def probe(self, path: str) -> int | None:
        return None

    async def _get(self, path: str) -> int | None:
        return None

    async def _finish(self) -> None:
        try:
            code = await self._run.finish()
        except NotUnderstood as error:
            self.shell.say(f"sh: {error}: not found")
            code = 127
        self._exit(code)

    def _exit(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)


class ImageRuntime:
    """Chooses by image: the first key of ``by_image`` that the image's name contains; else a script, where the command
    is one that a hollow container understands; else a ``PlainContainer``."""

    def __init__(self, timing: Timing, by_image: Mapping[str, CreateContainer]) -> None:
        self._timing = timing
        self._by_image = by_image

    async def create(self, pod: Json, container: Json, say: Say) -> Container:
        annotations = pod["metadata"].get("annotations") or {}
        if why := annotations.get(START_ERROR_ANNOTATION):
            raise OSError(why)
        image = str(container.get("image", ""))
        for part, create in self._by_image.items():
            if part in image:
                return await create(pod, container, say)
        argv = [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
        try:
            commands = parse(argv) if argv else None
        except NotUnderstood:
            commands = None
        return PlainContainer(pod, self._timing) if commands is None else ScriptContainer(commands, self._timing, say)
