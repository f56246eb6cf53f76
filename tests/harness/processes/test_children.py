"""A child's end is told as it was, whatever was sent to it meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # ships no types
import pytest

from harness.processes.children import spawn


async def test_a_signal_to_one_that_has_just_ended_does_not_hide_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for it hears of its end after the signal only, as on a busy machine."""
    told, waitpid = threading.Event(), os.waitpid

    def late(pid: int, options: int) -> tuple[int, int]:
        told.wait()
        return waitpid(pid, options)

    monkeypatch.setattr(os, "waitpid", late)
    try:
        child = await spawn(
            "sleeper", [sys.executable, "-c", "import time; time.sleep(60)"], env={}, log=tmp_path / "log"
        )
        child.kill()
        while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)  # noqa: ASYNC251 - the loop must not hear of it yet
        child.signal(signal.SIGTERM)
    finally:
        told.set()
    await child.stop(0)
    assert child.how_it_ended() == "sleeper was killed by SIGKILL"
