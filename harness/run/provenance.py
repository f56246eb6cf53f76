"""What ran: versions, commit, command line. Goes into the history, so that a run can be repeated."""

from __future__ import annotations

import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("gpu-harness", "locust", "chaostoolkit", "chaostoolkit-lib", "kubernetes", "aiohttp", "pandas")


def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "system": platform.system().lower()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed as a package"
    return found


def commit() -> tuple[str, bool]:
    """(commit, dirty) of the checkout that this code runs from; ("", False) when it is none."""
    root = Path(__file__).resolve().parents[2]
    head = _git(root, "rev-parse", "HEAD")
    if head is None:
        return "", False
    return head, bool(_git(root, "status", "--porcelain", "--untracked-files=no"))


def repeat_command(args: Sequence[str], seed: int) -> str:
    """The command line that repeats this run: what was typed, with the seed made explicit."""
    words = [Path(args[0]).name, *args[1:]] if args else [Path(sys.argv[0]).name]
    if not any(word == "--seed" or word.startswith("--seed=") for word in words):
        words += ["--seed", str(seed)]
    return shlex.join(words)


def _git(root: Path, *args: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *args], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
