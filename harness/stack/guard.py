"""Runs one foreign program and lets it outlive nobody.

``python -m harness.stack.guard [--remove FOLDER] [--loopback-only] PROGRAM ARGUMENT...``

Our own children watch a pipe to their parent (``harness.processes.parent``); programs we did not write know nothing of
it, so this process holds the pipe for them. When the pipe ends, or on SIGTERM, the program gets SIGTERM, and SIGKILL a
little later. SIGUSR1 freezes it (SIGSTOP), SIGUSR2 lets it go on. What the parent would have tidied up, the guard does
in its place: it removes FOLDER. With ``--loopback-only`` the program listens on 127.0.0.1 where it asks for all
interfaces. The guard ends as the program did, by the same code or the same signal. Where the kernel offers it (Linux),
the program is also killed when the guard itself is killed.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from harness.processes.parent import watch_parent
from harness.stack import only_loopback

ORPHAN_GRACE_S = 1.0
"""Between SIGTERM and SIGKILL once the parent is gone: nothing outlives it by more than two seconds."""
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Guard:
    """A request to stop that comes before the program is there is kept for it."""

    def __init__(self, remove: str | None, loopback_only: bool) -> None:
        self._program: subprocess.Popen[bytes] | None = None
        self._asked = False
        self._orphaned = False
        self._remove = remove
        self._group = only_loopback.group() if loopback_only else None

    def ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        self._end()

    def freeze(self, number: int, frame: FrameType | None) -> None:
        if self._program is not None:
            self._program.send_signal(signal.SIGSTOP)

    def thaw(self, number: int, frame: FrameType | None) -> None:
        if self._program is not None:
            self._program.send_signal(signal.SIGCONT)

    def _end(self) -> None:
        """One that is frozen hears SIGTERM only when it goes on."""
        if self._program is not None:
            self._program.terminate()
            self._program.send_signal(signal.SIGCONT)

    def run(self, argv: list[str]) -> int:
        """The program's return code as ``subprocess`` counts it: negative for a signal."""
        self._program = subprocess.Popen(argv, stdin=subprocess.DEVNULL, preexec_fn=_before_it(self._group))
        if self._asked:
            self._program.terminate()
        watch_parent(self._parent_is_gone)
        code = self._program.wait()
        if self._group is not None:
            with suppress(OSError):  # what it started itself may still be in there
                self._group.rmdir()
        if self._orphaned and self._remove:
            shutil.rmtree(self._remove, ignore_errors=True)
        return code

    def _parent_is_gone(self) -> None:
        assert self._program is not None
        self._orphaned = True
        self._end()
        killing = threading.Timer(ORPHAN_GRACE_S, self._program.kill)
        killing.daemon = True
        killing.start()


def _before_it(group: Path | None) -> Callable[[], None] | None:
    """What the child does between fork and exec."""
    die = _die_with_the_guard()
    if group is None:
        return die

    def both() -> None:
        only_loopback.enter(group)
        if die is not None:
            die()

    return both


def _die_with_the_guard() -> Callable[[], None] | None:
    """The library is loaded before the fork: loading it after could hang."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_like(code: int) -> NoReturn:
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program's core, if any, is the one that is wanted
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    sys.exit(code)


def main() -> NoReturn:
    argv = sys.argv[1:]
    remove = None
    if argv[0] == "--remove":
        _, remove, *argv = argv
    if loopback_only := argv[0] == "--loopback-only":
        argv = argv[1:]
    try:
        guard = Guard(remove, loopback_only)
        signal.signal(signal.SIGTERM, guard.ask)
        signal.signal(signal.SIGINT, guard.ask)
        signal.signal(signal.SIGUSR1, guard.freeze)
        signal.signal(signal.SIGUSR2, guard.thaw)
        code = guard.run(argv)
    except OSError as error:
        sys.exit(f"{argv[0]}: {error.strerror}")
    _end_like(code)


if __name__ == "__main__":
    main()
