"""Python's collector of cycles, told to rest while half a million objects without cycles are made or looked at.

It would walk through all of them again and again, and free nothing: reading a long history takes twice as long with it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_resting() -> Iterator[None]:
    """As a decorator, too. Within another one it changes nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
