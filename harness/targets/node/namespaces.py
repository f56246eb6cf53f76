"""Network namespaces of Linux, from within one process: it moves into one of its own, and still opens sockets in the
one that it came from.

A socket belongs to the namespace in which it was made, wherever its process goes afterwards.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import TypeVar

CLONE_NEWNET = 0x40000000  # linux/sched.h
PR_SET_PDEATHSIG = 1  # linux/prctl.h
SIGKILL = 9

T = TypeVar("T")
_libc = ctypes.CDLL(None, use_errno=True)


def enter_new_network() -> int:
    """The calling thread is in an empty network afterwards. Returns a descriptor of the one that it left. Needs root,
    and to be called before other threads are begun."""
    left = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    _check(_libc.unshare(CLONE_NEWNET), "unshare")
    return left


def within(network: int, make: Callable[[], T]) -> T:
    """What ``make`` makes in that network: a socket, say. It must not wait."""
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.setns(network, CLONE_NEWNET), "setns")
        try:
            return make()
        finally:
            _check(_libc.setns(here, CLONE_NEWNET), "setns")
    finally:
        os.close(here)


def die_with_parent() -> None:
    """For ``preexec_fn``: the kernel kills the child when the thread that made it ends, however it ends."""
    _libc.prctl(PR_SET_PDEATHSIG, SIGKILL)


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
