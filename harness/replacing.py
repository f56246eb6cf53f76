"""Files that are written whole or not at all: a full disk must not cost the one that was there before."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Leaves the old file, and nothing else, where the new one cannot be written. What is no plain file (a pipe,
    ``/dev/stdout``) is written to as it is; so is a file in a folder that takes no other."""
    real = path.resolve()
    if real.exists() and not real.is_file():
        path.write_text(text, encoding="utf-8")
        return
    part = real.with_name(real.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        if real.exists():
            part.chmod(real.stat().st_mode & 0o777)
        part.replace(real)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        if not (isinstance(error, PermissionError) and real.exists()):
            raise
        real.write_text(text, encoding="utf-8")
