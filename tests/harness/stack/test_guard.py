"""A program that knows nothing of our parent pipe ends with its guard, whichever way that ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from programs import python_program
from seen import until

from harness.processes.children import Child, spawn

LONG = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
time.sleep(60)
"""
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + LONG


async def guarded(tmp_path: Path, body: str, *options: str) -> tuple[Child, int]:
    """The guard, and the pid of the program once it runs."""
    program, told = python_program(tmp_path, "program", body), tmp_path / "pid"
    argv = [sys.executable, "-m", "harness.stack.guard", *options, str(program), str(told)]
    child = await spawn("program", argv, env={}, log=tmp_path / "log")
    await until(lambda: told.exists() and told.read_text() != "")
    return child, int(told.read_text())


def gone(pid: int) -> bool:
    try:
        return state(pid) == "Z"
    except OSError:
        return True


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def closes_the_pipe(child: Child) -> None:
    child._close_pipe()


async def kills_the_guard(child: Child) -> None:
    os.kill(child.pid, signal.SIGKILL)


async def stops(child: Child) -> None:
    await child.stop(5)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("body", [LONG, STUBBORN], ids=["obeys", "ignores-sigterm"])
@pytest.mark.parametrize("ending", [closes_the_pipe, kills_the_guard])
async def test_the_program_ends_with_its_parent_or_its_guard(
    tmp_path: Path, body: str, ending: Callable[[Child], Awaitable[None]]
) -> None:
    child, pid = await guarded(tmp_path, body)
    assert not gone(pid)
    started = asyncio.get_running_loop().time()
    await ending(child)
    await until(lambda: gone(pid))
    assert asyncio.get_running_loop().time() - started < 2
    await child.wait()


@pytest.mark.parametrize(("ending", "left"), [(closes_the_pipe, False), (stops, True)], ids=["orphaned", "stopped"])
async def test_what_an_orphan_leaves_is_removed_and_nothing_else_is(
    tmp_path: Path, ending: Callable[[Child], Awaitable[None]], left: bool
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "file").write_text("secret")
    child, _ = await guarded(tmp_path, LONG, "--remove", str(data))
    await ending(child)
    await child.wait()
    assert data.exists() is left


async def test_sigterm_reaches_the_program_and_its_end_is_told(tmp_path: Path) -> None:
    body = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n" + LONG
    child, pid = await guarded(tmp_path, body)
    await child.stop(5)
    assert (child.returncode, gone(pid)) == (7, True)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("ending", [closes_the_pipe, kills_the_guard, stops])
async def test_a_frozen_program_outlives_nobody_either(
    tmp_path: Path, ending: Callable[[Child], Awaitable[None]]
) -> None:
    child, pid = await guarded(tmp_path, LONG)
    child.signal(signal.SIGUSR1)
    await until(lambda: state(pid) == "T")
    await ending(child)
    await until(lambda: gone(pid))
    await child.wait()


async def test_a_killed_program_is_told_as_killed(tmp_path: Path) -> None:
    child, pid = await guarded(tmp_path, LONG)
    os.kill(pid, signal.SIGKILL)
    await child.wait()
    assert child.how_it_ended() == "program was killed by SIGKILL"


async def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "harness.stack.guard", str(tmp_path / "absent")]
    child = await spawn("program", argv, env={}, log=tmp_path / "log")
    assert await child.wait() == 1
    assert child.last_lines() == [f"{tmp_path}/absent: No such file or directory"]
