"""Whether a run's folder belongs to a process that is still alive. A lock of the kernel: it ends with the process."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

LOCK_FILE = "run.lock"


def hold_lock(run_dir: Path) -> int | None:
    """Takes the folder for as long as this process lives, or until the descriptor is closed. None: another has it."""
    fd = os.open(run_dir / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def is_alive(run_dir: Path) -> bool:
    """Whether somebody holds the folder. One from before there were locks belongs to nobody."""
    if not (run_dir / LOCK_FILE).exists():
        return False
    fd = hold_lock(run_dir)
    if fd is None:
        return True
    os.close(fd)
    return False
