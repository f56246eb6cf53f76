"""Every error a user can meet, and the exit code it ends in.

HarnessError
├── BadInput           64: a file, flag or value that people wrote is wrong
├── GuardRefused       64: the run would touch what it must not
├── TargetError        70: the cluster could not be brought up, reached or taken down
└── InternalError      70: our own defect, or a machine that refuses (disk full, no sockets)

An error says what was seen, where, what would be right, and what to do next (``hint``).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class ExitCode(enum.IntEnum):
    """The only exit codes of any command (design, 4.5)."""

    PASS = 0
    FAIL = 1
    UNKNOWN = 2
    BAD_INPUT = 64
    HARNESS_ERROR = 70


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file that people wrote. Lines count from 1; ``key`` is dotted (``method.0.provider.func``)."""

    file: str
    line: int | None = None
    key: str | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return place if self.key is None else f"{place} ({self.key})"


class HarnessError(Exception):
    """Base of all errors that are shown to people as one message, never as a traceback."""

    exit_code = ExitCode.HARNESS_ERROR

    def __init__(self, message: str, *, where: Where | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.also: tuple[HarnessError, ...] = ()
        """Others found in the same go, so that a file is mended once and not mistake by mistake."""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return "\n".join([f"{place}{self.message}{hint}", *map(str, self.also)])


class BadInput(HarnessError):
    """Something that people wrote is wrong; nothing was started."""

    exit_code = ExitCode.BAD_INPUT


class GuardRefused(HarnessError):
    """A guard refused the run or a fault before anything was touched."""

    exit_code = ExitCode.BAD_INPUT


class TargetError(HarnessError):
    """The target could not be brought up, reached or taken down."""


class InternalError(HarnessError):
    """A defect of the harness, or of the machine it runs on."""
