"""Nothing outlives its parent: a child holds the reading end of a pipe and stops when it reaches its end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

PARENT_FD_ENV = "GPU_HARNESS_PARENT_FD"


def parent_fd() -> int | None:
    """The inherited pipe, or None when the process was started by hand."""
    text = os.environ.get(PARENT_FD_ENV)
    return int(text) if text else None


def watch_parent(on_eof: Callable[[], None]) -> threading.Thread | None:
    """Calls ``on_eof`` from a daemon thread when the parent is gone. Not for processes that gevent has patched."""
    fd = parent_fd()
    if fd is None:
        return None

    def wait() -> None:
        while os.read(fd, 4096):
            pass
        on_eof()

    thread = threading.Thread(target=wait, name="parent-watch", daemon=True)
    thread.start()
    return thread
