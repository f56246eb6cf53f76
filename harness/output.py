"""Standard output and error that may go away, or be full, while a run must go on to its heal and its verdict."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

_READER_LEFT = (errno.EPIPE, errno.EIO)
"""``| head``, or a terminal that was closed: nobody wants to read on, which is no error."""


class _Descriptor(io.FileIO):
    """A descriptor whose first failure is kept, and that swallows what is written after it."""

    failure: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BlockingIOError:
            raise
        except OSError as error:
            self.failure = error
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return len(memoryview(data).cast("B"))


class Output:
    """What became of the descriptors."""

    def __init__(self, descriptors: Sequence[_Descriptor]) -> None:
        self._descriptors = descriptors

    def lost(self) -> str | None:
        """Why something that was said is not where it should be, None when all of it is or nobody wanted it."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        failures = [d.failure for d in self._descriptors if d.failure is not None]
        return next((f.strerror for f in failures if f.errno not in _READER_LEFT), None)


def keep_output() -> Output:
    """Replaces ``sys.stdout`` and ``sys.stderr``. A descriptor that was closed before we came is opened on nothing:
    else the next file to be opened would get its number, and our output."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # Gets the lowest free number, which is this one.
    out, err = _Descriptor(1, "wb", closefd=False), _Descriptor(2, "wb", closefd=False)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(out), encoding=encoding, errors="backslashreplace", line_buffering=out.isatty()
    )
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(err), encoding=encoding, errors="backslashreplace", line_buffering=True
    )
    return Output((out, err))
