"""Real programs of one run: started, waited for, watched, stopped. Each runs under a guard and has a log of its own."""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from harness.errors import TargetError
from harness.run.children import Child, spawn

POLL_S = 0.05
START_TIMEOUT_S = 60
STOP_GRACE_S = 2.0
"""Until SIGKILL. Nothing is written that a later start would need, so nobody is given time to finish."""


@dataclass(frozen=True, slots=True)
class Health:
    """Where a program says that it serves: ``url`` answers 200. ``authority`` signs its certificate, if it has one."""

    url: str
    authority: Path | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """One program as it is started. ``argv`` begins with the program itself; ``remove`` is a folder that is to go when
    nobody is left to remove it."""

    name: str
    argv: tuple[str, ...]
    health: Health
    env: Mapping[str, str] = field(default_factory=dict)
    remove: Path | None = None


class Services:
    """What was started last is stopped first."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._children: list[Child] = []

    async def start(self, *launches: Launch) -> None:
        """All of them at once; returns when each says that it serves. TargetError, with its last lines, when one ends
        or does not get there in time."""
        self._logs.mkdir(parents=True, exist_ok=True)
        started = [(launch, await self._spawn(launch)) for launch in launches]
        try:
            async with asyncio.TaskGroup() as waiting:
                for launch, child in started:
                    waiting.create_task(_until_healthy(launch, child))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _spawn(self, launch: Launch) -> Child:
        guarded = [sys.executable, "-m", "harness.stack.guard"]
        guarded += ["--remove", str(launch.remove)] if launch.remove else []
        guarded += launch.argv
        log = self._logs / f"{launch.name}.log"
        child = await spawn(launch.name, guarded, env=launch.env, log=log)
        self._children.append(child)
        return child

    def dead(self) -> Child | None:
        """The first program that ended, though nobody asked it to."""
        return next((child for child in self._children if child.returncode is not None), None)

    async def stop(self) -> None:
        while self._children:
            await self._children[-1].stop(STOP_GRACE_S)
            self._children.pop()

    @property
    def pids(self) -> dict[str, int]:
        """The guards, by the program's name."""
        return {child.name: child.pid for child in self._children}


async def _until_healthy(launch: Launch, child: Child) -> None:
    authority = launch.health.authority
    verify = ssl.create_default_context(cafile=str(authority)) if authority else True
    # The environment may name a proxy, which has no business between two programs on one machine.
    async with httpx.AsyncClient(verify=verify, trust_env=False, timeout=2) as client:
        last = "it did not listen"
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                while child.returncode is None:
                    try:
                        answer = await client.get(launch.health.url)
                    except httpx.HTTPError as error:
                        last = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                    else:
                        if answer.status_code == 200:
                            return
                        last = f"{launch.health.url} answered {answer.status_code}: {answer.text[-300:]}"
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise not_up(child, f"{launch.name} did not serve after {START_TIMEOUT_S} s ({last})") from None
    raise not_up(child, child.how_it_ended())


def not_up(child: Child, why: str) -> TargetError:
    return TargetError("\n    ".join([why, *child.last_lines()]), hint=f"its log: {child.log}")
