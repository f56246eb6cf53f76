"""Every case against both servers, and what came of it."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any

import aiohttp
from aiohttp import web
from case import Case
from play import Player, SetupFailed, differences
from real import RealServer

from fakes.clock import WallClock
from fakes.kube import Store, make_app

AT_ONCE = 6


@dataclass(frozen=True, slots=True)
class Outcome:
    """``unexplained`` and ``stale`` (explanations that explain nothing) are failures; so is ``broken``."""

    case: Case
    unexplained: tuple[tuple[str, Any, Any], ...] = ()
    stale: tuple[str, ...] = ()
    broken: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.unexplained or self.stale or self.broken)

    def __str__(self) -> str:
        lines = [self.case.name]
        if self.broken:
            lines.append(f"  could not be played: {self.broken}")
        for where, ours, real in self.unexplained:
            lines += [f"  {where}", f"    ours: {_short(ours)}", f"    real: {_short(real)}"]
        lines += [f"  no longer differs: {where}" for where in self.stale]
        return "\n".join(lines)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 600 else text[:600] + "…"


def judge(case: Case, ours: list[Any], real: list[Any]) -> Outcome:
    found = differences(ours, real)
    left, used = [], set()
    for where, mine, theirs in found:
        by = [e.where for e in case.explained if _fits(where, e.where)]
        used.update(by)
        if not by:
            left.append((where, mine, theirs))
    stale = tuple(e.where for e in case.explained if e.where not in used)
    return Outcome(case, tuple(left), stale)


def _fits(where: str, pattern: str) -> bool:
    """``*`` is anything; brackets stand for themselves."""
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), where) is not None


async def compare(cases: Sequence[Case], server: RealServer, prefix: str = "c") -> list[Outcome]:
    """``prefix`` begins the name of every case's namespace, so that one real server can be used again."""
    store = Store(WallClock(datetime.now(UTC)), Random(1))
    runner = web.AppRunner(make_app(store, bookmark_s=1.0), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, port = runner.addresses[0][:2]
    try:
        async with (
            aiohttp.ClientSession(f"http://{host}:{port}") as ours,
            aiohttp.ClientSession(
                server.url,
                connector=aiohttp.TCPConnector(ssl=context),
                headers={"Authorization": f"Bearer {server.token}"},
            ) as theirs,
        ):
            turns = asyncio.Semaphore(AT_ONCE)

            async def one(number: int, case: Case) -> Outcome:
                async with turns:
                    return await _outcome(case, f"{prefix}-{number}", Player(ours), Player(theirs))

            return list(await asyncio.gather(*(one(i, c) for i, c in enumerate(cases))))
    finally:
        await runner.cleanup()
        assert store.tampered() == []


async def _outcome(case: Case, namespace: str, ours: Player, theirs: Player) -> Outcome:
    """Both at once: neither waits for the other, so a case takes as long as the slower."""
    played = await asyncio.gather(ours.play(case, namespace), theirs.play(case, namespace), return_exceptions=True)
    for side, result in zip(("ours", "real"), played, strict=True):
        if isinstance(result, BaseException):
            kind = "" if isinstance(result, SetupFailed) else f"{type(result).__name__}: "
            return Outcome(case, broken=f"{side}: {kind}{result}")
    one, other = played
    assert isinstance(one, list) and isinstance(other, list)
    return judge(case, one, other)
