"""Commands of which images are made; each does what it should or says why not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


class ImageFailed(Exception):
    """In words for a person."""


def run(*argv: str, cwd: Path | None = None, env: dict[str, str] | None = None, given: str | None = None) -> str:
    ended = subprocess.run(
        argv, cwd=cwd, env={**os.environ, **(env or {})}, input=given, capture_output=True, text=True
    )
    if ended.returncode != 0:
        raise ImageFailed(
            f"{' '.join(argv)[:200]} ended with {ended.returncode}: {(ended.stderr or ended.stdout)[-800:]}"
        )
    return ended.stdout


def piped(first: Sequence[str], then: Sequence[str]) -> None:
    with subprocess.Popen(first, stdout=subprocess.PIPE) as source:
        ended = subprocess.run(then, stdin=source.stdout, capture_output=True, text=True)
    if ended.returncode != 0 or source.returncode != 0:
        raise ImageFailed(f"{' '.join(then)[:200]} ended with {ended.returncode}: {ended.stderr[-800:]}")


def shell(line: str) -> None:
    ended = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True)
    if ended.returncode != 0:
        raise ImageFailed(f"{line[:200]} ended with {ended.returncode}: {ended.stderr[-800:]}")
