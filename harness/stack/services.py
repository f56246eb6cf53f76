"""Real programs of one run: started, waited for, watched, stopped. Each runs under a guard and has a log of its own."""

from __future__ import annotations

import asyncio
import signal
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil  # type: ignore[import-untyped]  # ships no types

from harness.errors import TargetError
from harness.processes.children import Child, spawn

POLL_S = 0.05
START_TIMEOUT_S = 60
FROZEN_WITHIN_S = 10.0
STOP_GRACE_S = 2.0
"""Until SIGKILL. Nothing is written that a later start would need, so nobody is given time to finish."""


@dataclass(frozen=True, slots=True)
class Health:
    """Where a program says that it serves: ``url`` answers 200. ``authority`` signs its certificate, if it has one that
    we can check; ``unchecked`` where it has made its own."""

    url: str
    authority: Path | None = None
    unchecked: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """One program as it is started. ``argv`` begins with the program itself; ``remove`` is a folder that is to go when
    nobody is left to remove it. ``exits``: how often it may end by itself, and is started again. ``loopback_only``:
    what it binds to all interfaces is bound to 127.0.0.1 (``harness.stack.only_loopback``)."""

    name: str
    argv: tuple[str, ...]
    health: Health
    env: Mapping[str, str] = field(default_factory=dict)
    remove: Path | None = None
    exits: int = 0
    within_s: float = START_TIMEOUT_S
    loopback_only: bool = False


@dataclass(slots=True)
class Service:
    """One program of a run, whichever process it is just now. ``halted``: somebody asked for its end, or froze it."""

    launch: Launch
    child: Child
    exits_left: int
    halted: bool = False
    watching: asyncio.Task[None] | None = None

    @property
    def is_frozen(self) -> bool:
        """By the system's own word on the process that the guard holds."""
        try:
            held = psutil.Process(self.child.pid).children()
            return bool(held) and all(each.status() == psutil.STATUS_STOPPED for each in held)
        except psutil.NoSuchProcess:
            return False

    @property
    def is_dead(self) -> bool:
        return self.child.returncode is not None and not self.halted and self.exits_left == 0


class Services:
    """What was started last is stopped first."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._services: list[Service] = []

    async def start(self, *launches: Launch) -> None:
        """All of them at once; returns when each says that it serves. TargetError, with its last lines, when one ends
        or does not get there in time."""
        self._logs.mkdir(parents=True, exist_ok=True)
        started = [await self._add(launch) for launch in launches]
        try:
            async with asyncio.TaskGroup() as waiting:
                for service in started:
                    waiting.create_task(_until_healthy(service))
        except ExceptionGroup as failures:
            raise first_of(failures) from None

    async def halt(self, name: str, *, hard: bool = False) -> None:
        """Ends a program because somebody wants that: it is not dead then. ``hard`` is SIGKILL. Idempotent; KeyError
        for a program that there is not."""
        service = self.named(name)
        service.halted = True
        if hard:
            service.child.kill()
        await service.child.stop(STOP_GRACE_S)

    async def freeze(self, name: str) -> None:
        """Its process is there and does nothing more: who asks it waits. Idempotent; KeyError as above, TargetError
        where it does not run."""
        service = self.named(name)
        if service.child.returncode is not None:
            raise TargetError(f"{name} does not run, so it cannot be frozen")
        service.halted = True
        service.child.signal(signal.SIGUSR1)
        await _until_frozen(service, True)

    async def resume(self, name: str) -> None:
        """Starts a halted program again, or lets a frozen one go on, and waits until it serves. Idempotent; KeyError,
        TargetError as above."""
        service = self.named(name)
        if not service.halted:
            return
        if service.is_frozen:
            service.child.signal(signal.SIGUSR2)
            await _until_frozen(service, False)
        else:
            service.child = await self._spawn(service.launch)
        service.halted = False
        await _until_healthy(service)

    def named(self, name: str) -> Service:
        return {service.launch.name: service for service in self._services}[name]

    @property
    def all(self) -> tuple[Service, ...]:
        return tuple(self._services)

    async def _add(self, launch: Launch) -> Service:
        service = Service(launch, await self._spawn(launch), launch.exits)
        self._services.append(service)
        if launch.exits:
            service.watching = asyncio.create_task(self._start_again(service))
        return service

    async def _start_again(self, service: Service) -> None:
        while service.exits_left:
            await service.child.wait()
            if service.halted:
                return
            await service.child.stop(0)
            service.child = await self._spawn(service.launch)
            service.exits_left -= 1

    async def _spawn(self, launch: Launch) -> Child:
        guarded = [sys.executable, "-m", "harness.stack.guard"]
        guarded += ["--remove", str(launch.remove)] if launch.remove else []
        guarded += ["--loopback-only"] if launch.loopback_only else []
        guarded += launch.argv
        return await spawn(launch.name, guarded, env=launch.env, log=self._logs / f"{launch.name}.log")

    def dead(self) -> Child | None:
        """The first program that ended, though nobody asked it to."""
        return next((service.child for service in self._services if service.is_dead), None)

    async def stop(self) -> None:
        while self._services:
            service = self._services[-1]
            service.halted = True
            if service.watching is not None:
                service.watching.cancel()
                await asyncio.gather(service.watching, return_exceptions=True)
            await service.child.stop(STOP_GRACE_S)
            self._services.pop()

    @property
    def pids(self) -> dict[str, int]:
        """The guards, by the program's name."""
        return {service.launch.name: service.child.pid for service in self._services}


async def _until_frozen(service: Service, frozen: bool) -> None:
    try:
        async with asyncio.timeout(FROZEN_WITHIN_S):
            while service.is_frozen is not frozen:
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        said = "goes on" if frozen else "stands still"
        name = service.launch.name
        raise TargetError(f"{name} {said} {FROZEN_WITHIN_S:g} s after it was told otherwise") from None


async def _until_healthy(service: Service) -> None:
    launch = service.launch
    health = launch.health
    verify: ssl.SSLContext | bool = not health.unchecked
    if health.authority:
        verify = ssl.create_default_context(cafile=str(health.authority))
    # The environment may name a proxy, which has no business between two programs on one machine.
    async with httpx.AsyncClient(verify=verify, trust_env=False, timeout=2) as client:
        last = "it did not listen"
        try:
            async with asyncio.timeout(launch.within_s):
                while not service.is_dead and not service.halted:
                    try:
                        answer = await client.get(health.url)
                    except httpx.HTTPError as error:
                        last = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                    else:
                        if answer.status_code == 200 and service.child.returncode is None:
                            return
                        last = f"{health.url} answered {answer.status_code}: {answer.text[-300:]}"
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise not_up(service.child, f"{launch.name} did not serve after {launch.within_s:g} s ({last})") from None
    raise not_up(service.child, service.child.how_it_ended())


def first_of(failures: ExceptionGroup) -> Exception:
    """What a task group's user is told: the first failure, of whichever group within, for the others follow from it."""
    first = failures.exceptions[0]
    return first_of(first) if isinstance(first, ExceptionGroup) else first


def not_up(child: Child, why: str) -> TargetError:
    return TargetError("\n    ".join([why, *child.last_lines()]), hint=f"its log: {child.log}")
