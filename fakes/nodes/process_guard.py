"""Runs one process of a container, and whatever it starts, and lets none of them outlive its node.

``python -m fakes.nodes.process_guard PIPE PROGRAM ARGUMENT...``

The program leads a process group of its own. SIGTERM goes on to the program alone, as a kubelet sends it to process 1
of a container. What comes through the pipe stops the whole group (``FREEZE``) or lets it go on (``THAW``). When it
ends (its other end is held by who started this: it closed it, or is dead), the whole group is killed: a model server
leaves engine and workers behind when only its first process dies, each with hundreds of megabytes in shared memory,
which nobody frees either. So what the group had mapped of ``/dev/shm`` is removed with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType

NOT_FOUND_CODE = 127
SHARED = "/dev/shm/"
FREEZE, THAW = b"F", b"T"


class Guard:
    def __init__(self, argv: list[str]) -> None:
        self._shared: set[str] = set()
        self._program = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)

    def terminate(self, number: int, frame: FrameType | None) -> None:
        # Now, for a server may end its own engine the hard way, and what that one had mapped is known no more then.
        self._shared |= shared_memory_of(self._program.pid)
        self._program.terminate()

    def obey(self, pipe: int) -> None:
        """Until it ends, and then kills."""
        while order := os.read(pipe, 1):
            self._signal_group(signal.SIGSTOP if order == FREEZE else signal.SIGCONT)
        self._kill_group()

    def wait(self) -> int:
        code = self._program.wait()
        self._kill_group()
        for name in self._shared:
            with contextlib.suppress(OSError):
                Path(name).unlink()
        return code if code >= 0 else 128 - code

    def _kill_group(self) -> None:
        self._shared |= shared_memory_of(self._program.pid)
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._program.pid, number)


def shared_memory_of(group: int) -> set[str]:
    """Files in ``/dev/shm`` that processes of this group have mapped. Nothing where there is no ``/proc``."""
    found: set[str] = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError, ValueError):
            if os.getpgid(int(maps.parent.name)) == group:
                places = (line.partition(SHARED) for line in maps.read_text(errors="replace").splitlines())
                found |= {SHARED + rest for _, there, rest in places if there and not rest.endswith("(deleted)")}
    return found


def main(argv: list[str]) -> int:
    pipe, program = int(argv[0]), argv[1:]
    try:
        guard = Guard(program)
    except OSError as error:
        print(f"{program[0]}: {error.strerror or error}", file=sys.stderr)
        return NOT_FOUND_CODE
    signal.signal(signal.SIGTERM, guard.terminate)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=guard.obey, args=(pipe,), daemon=True).start()
    return guard.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
