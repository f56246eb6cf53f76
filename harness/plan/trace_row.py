"""One row of a recorded trace, whatever its file's format, and the one way to complain about a row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.errors import BadInput, Where

ROWS_MAX = 2_000_000
"""No run on one machine sends more; beyond it a slip in a rate would only fill the memory."""
BLOCK_TOKENS = 512
"""What one id of a Mooncake trace stands for."""


@dataclass(frozen=True, slots=True)
class TraceRow:
    """``t_ns`` counts from the first row of the file. No answer (``output_tokens`` 0) means that the service failed."""

    line: int
    t_ns: int
    prompt_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()
    """Ids of the prompt's blocks; equal leading ids are an equal beginning."""
    prefix: str = ""
    session: str = ""
    tenant: str = ""


def too_many(what: str, most: int) -> BadInput:
    hint = "lower the rate or duration_s; one run is meant for minutes"
    return BadInput(f"{what} makes more than {most:,} requests", hint=hint)


def bad_row(file: Path, line: int, column: str | None, message: str, hint: str) -> BadInput:
    return BadInput(message, where=Where(str(file), line, column), hint=hint)
