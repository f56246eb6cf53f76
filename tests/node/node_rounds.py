"""Rounds of up and down of ``--target node``, every second one ended by ``kill -9``: how long, and what is left."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from node_leavings import inhabitants, still_there, things

from fakes.config import PoolConfig, WorldConfig
from harness.targets.choosing import TARGETS
from harness.targets.wanted import Places, Wanted

UP_WITHIN_S = 240.0
GONE_WITHIN_S = 45.0
POOLS = (PoolConfig("spot", "spot", nodes=1, stock=1), PoolConfig("on-demand", "on-demand", nodes=1, stock=1))


@dataclass(frozen=True, slots=True)
class Round:
    """``left`` is what was there afterwards and not before."""

    killed: bool
    up_s: float
    gone_s: float
    left: tuple[str, ...]


def one_round(folder: Path, *, kill: bool) -> Round:
    """``folder`` is the run's. RuntimeError with the child's last words when it does not come up."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    before = things(folder)
    began_s = time.monotonic()
    with subprocess.Popen(
        [sys.executable, __file__, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stdin is not None
        line = child.stdout.readline()
        up_s = time.monotonic() - began_s
        if not line.startswith('{"up'):
            child.kill()
            raise RuntimeError(f"it did not come up; its logs: {folder / 'logs'}")
        lived = inhabitants(folder)
        ended_s = time.monotonic()
        if kill:
            child.send_signal(signal.SIGKILL)
        else:
            child.stdin.close()
        child.wait()
    left: set[str] = set()
    while time.monotonic() - ended_s < GONE_WITHIN_S:
        left = (things(folder) - before) | still_there(lived)
        if not left:
            break
        time.sleep(0.2)
    return Round(kill, up_s, time.monotonic() - ended_s, tuple(sorted(left)))


async def _hold(folder: Path) -> None:
    target = TARGETS["node"](None)(
        Wanted(WorldConfig(seed=1, time_scale=1.0, pools=POOLS)), Places(folder, folder / "logs")
    )
    try:
        await target.up()
        print(json.dumps({"up": True}), flush=True)
        await asyncio.to_thread(sys.stdin.read)
    finally:
        await target.down()


if __name__ == "__main__":
    asyncio.run(_hold(Path(sys.argv[1]).resolve()))
