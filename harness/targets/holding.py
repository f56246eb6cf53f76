"""The process that holds a cluster up after the command that asked for it has ended.

``python -m harness.targets.holding`` brings the target up, writes its connection into the folder, and takes the target
down on SIGTERM, at the end of its time, or when a part of the cluster dies.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from dataclasses import replace
from pathlib import Path

from harness.errors import ExitCode, HarnessError
from harness.kube.port import ApiError
from harness.spec.experiment import load_experiment
from harness.targets.base import CONNECTION_FILE, Connection, Target
from harness.targets.choosing import TARGETS
from harness.targets.standing import PROGRESS
from harness.targets.wanted import Places, Wanted, two_empty_nodes, wanted_by, with_stack

LOOK_S = 0.5


async def hold(target: Target, folder: Path, ttl_s: float) -> None:
    """Returns when the cluster is down again. HarnessError when it did not come up, or a part of it died."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.call_later(ttl_s, stop.set)
    coming_up = asyncio.ensure_future(target.up())
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({coming_up, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not coming_up.done():
            return
        connection = await _with_fingerprint(coming_up.result())
        part = folder / f".{CONNECTION_FILE}.part"
        connection.write(part)
        part.rename(folder / CONNECTION_FILE)
        while not stop.is_set():
            if (why := target.died()) is not None:
                raise HarnessError(f"the cluster is down: {why}", hint=f"its log: {target.log}")
            await asyncio.wait({stopping}, timeout=LOOK_S)
    finally:
        (folder / CONNECTION_FILE).unlink(missing_ok=True)
        stopping.cancel()
        coming_up.cancel()
        await asyncio.gather(coming_up, stopping, return_exceptions=True)
        await target.down()


async def _with_fingerprint(connection: Connection) -> Connection:
    async with connection.kube() as kube:
        return replace(connection, fingerprint=await kube.fingerprint())


def _say(text: str) -> None:
    print(f"{PROGRESS}{text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m harness.targets.holding")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--experiment", type=Path)
    parser.add_argument("--bin-dir", type=Path)
    parser.add_argument("--stack", action="append", default=[])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--ttl-s", type=float, required=True)
    args = parser.parse_args()
    try:
        if args.experiment:
            wanted = wanted_by(load_experiment(args.experiment), args.seed)
        else:
            wanted = Wanted(two_empty_nodes(args.seed))
        wanted = with_stack(wanted, args.stack)
        target = TARGETS[args.target](args.bin_dir)(wanted, Places(args.folder, args.folder / "logs", say=_say))
        asyncio.run(hold(target, args.folder, args.ttl_s))
    except HarnessError as error:
        print(f"gpu-harness: {error}", file=sys.stderr)
        return int(error.exit_code)
    except ApiError as error:
        print(f"gpu-harness: the API server said {error}", file=sys.stderr)
        return int(ExitCode.HARNESS_ERROR)
    except OSError as error:  # the machine refuses: `up` shows these words, and a traceback would be none
        place = f"{error.filename}: " if error.filename else ""
        print(f"gpu-harness: {place}the machine refused: {error.strerror or error}", file=sys.stderr)
        return int(ExitCode.HARNESS_ERROR)
    return int(ExitCode.PASS)


if __name__ == "__main__":
    sys.exit(main())
