"""Where built programs are kept: one folder of the user's cache, shared by all checkouts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path


def cache_dir(env: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_CACHE_HOME/gpu-harness``, by default ``~/.cache/gpu-harness``. A relative XDG_CACHE_HOME counts as unset,
    as the XDG base directory specification has it."""
    base = Path(env.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "gpu-harness"


def built_dir(env: Mapping[str, str] = os.environ) -> Path:
    return cache_dir(env) / "bin"


def noted(program: Path) -> dict[str, object]:
    """What was written down of its build; empty for what nobody can read."""
    try:
        found = json.loads(program.with_name(f"{program.name}.json").read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def cut_short(program: Path) -> str:
    """What is wrong with a program of this cache that is not as large as its build left it; empty for a whole one."""
    there, built = program.stat().st_size, noted(program).get("size")
    return "" if built in (None, there) else f"has {there} bytes of the {built} that were built"
