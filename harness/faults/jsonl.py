"""One way to add a line to a JSON-lines file that several processes of a run write."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def append_line(path: Path, value: Mapping[str, Any], *, sync: bool = False) -> None:
    """Appends in one write, so lines of different processes never mix; ``sync`` returns once it is on disk."""
    data = (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        written = os.write(fd, data)
        while written < len(data):
            written += os.write(fd, data[written:])
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)
