"""Rounds of up and down of ``--target node``, every second one ended by ``kill -9``: how long, and what is left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from fakes.config import PoolConfig, WorldConfig
from harness.targets.choosing import TARGETS
from harness.targets.node.cgroups import ROOT
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
    before = whats_there(folder)
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
        ours = json.loads((folder / "machines/room.json").read_text())["cgroup"]
        ended_s = time.monotonic()
        if kill:
            child.send_signal(signal.SIGKILL)
        else:
            child.stdin.close()
        child.wait()
    left: set[str] = set()
    while time.monotonic() - ended_s < GONE_WITHIN_S:
        left = (whats_there(folder) | _cgroups(ours)) - before
        if not left:
            break
        time.sleep(0.2)
    return Round(kill, up_s, time.monotonic() - ended_s, tuple(sorted(left)))


def whats_there(folder: Path) -> set[str]:
    """Processes, mounts, interfaces and files that a machine could leave behind."""
    found = {f"interface {path.name}" for path in Path("/sys/class/net").iterdir()}
    found |= {f"mount {line}" for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(folder) in line}
    found |= {f"file {path}" for path in folder.glob("*") if path.name != "logs"}
    found |= {f"file {path}" for path in Path("/var/lib").iterdir()}
    found |= {f"file {path}" for name in ("containers", "pods") for path in Path("/var/log", name).glob("*")}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words and int(process.name) != os.getpid():
            found.add(f"process {process.name} {words[:120]}")
    return found


def _cgroups(beginning: str) -> set[str]:
    return {f"cgroup {path}" for pattern in (f"{beginning}*", f"*/{beginning}*") for path in ROOT.glob(pattern)}


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
