"""Where built programs are kept: one folder of the user's cache, shared by all checkouts."""

from __future__ import annotations

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
