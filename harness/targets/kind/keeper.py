"""Takes a kind cluster of ours down when the process that brought it up has ended, however it ended.

``python -m harness.targets.kind.keeper DOCKER KIND CLUSTER KUBECONFIG RECORD`` waits for the end of its parent pipe, or
for SIGTERM. A cluster that is kept by then, which a file RECORD says, stays.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from harness.errors import TargetError
from harness.processes.parent import PARENT_FD_ENV
from harness.targets.kind.commands import KindCommands

QUIET_S = 1.0
"""A `kind create` that was under way may make one more container after the others are gone."""
TRIES = 3
"""One that it makes while the others go has the deletion fail, and so has a Docker that is busy."""


async def keep(commands: KindCommands, record: Path) -> int:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    if fd := os.environ.get(PARENT_FD_ENV):
        loop.add_reader(int(fd), ended.set)
    await ended.wait()
    if record.exists():
        return 0
    code = 0
    for _ in range(TRIES):
        try:
            while await commands.nodes():
                if not await commands.is_ours():
                    return 0  # it has our name, and was made by somebody else meanwhile
                await commands.delete()
                await asyncio.sleep(QUIET_S)
            return 0
        except TargetError as error:
            print(f"gpu-harness: {error}", file=sys.stderr)
            code = int(error.exit_code)
        await asyncio.sleep(QUIET_S)
    return code


if __name__ == "__main__":
    docker, kind, cluster, kubeconfig, record = sys.argv[1:]
    sys.exit(asyncio.run(keep(KindCommands(docker, kind, cluster, Path(kubeconfig)), Path(record))))
