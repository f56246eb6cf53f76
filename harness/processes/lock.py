"""Whether a folder, a run's or a kept cluster's, belongs to a living process. The kernel's lock ends with it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

LOCK_FILE = "run.lock"


def hold_lock(folder: Path) -> int | None:
    """Takes the folder for as long as this process lives, or until the descriptor is closed. None: another has it."""
    fd = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def is_alive(folder: Path) -> bool:
    """Whether somebody holds the folder. One from before there were locks belongs to nobody."""
    if not (folder / LOCK_FILE).exists():
        return False
    fd = hold_lock(folder)
    if fd is None:
        return True
    os.close(fd)
    return False
