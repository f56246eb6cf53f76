"""Checksums of a history's files, written when the run is over, so that a changed byte is noticed when it is judged.

``SHA256SUMS`` is in the format of sha256sum: ``(cd history && sha256sum -c SHA256SUMS)`` says the same.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

SEAL_FILE = "SHA256SUMS"


def seal(history_dir: Path) -> None:
    """Nothing may be written into the folder after it, but by who seals it again."""
    names = sorted(path.name for path in history_dir.iterdir() if path.is_file() and path.name != SEAL_FILE)
    text = "".join(f"{_sum(history_dir / name)}  {name}\n" for name in names)
    part = history_dir / (SEAL_FILE + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(history_dir / SEAL_FILE)


def broken_seals(history_dir: Path) -> dict[str, str]:
    """Files that are not what was sealed, each with why. Empty too where there is no seal: a run of old, or one that
    was killed, whose other files say so."""
    try:
        lines = (history_dir / SEAL_FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        return {SEAL_FILE: f"{SEAL_FILE} cannot be read: {error}"}
    broken: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        expected, _, name = line.partition("  ")
        if not name or "/" in name:
            broken[SEAL_FILE] = f"{SEAL_FILE}: line {number} is no checksum"
        elif not (history_dir / name).is_file():
            broken[name] = f"{name} is missing, but {SEAL_FILE} names it"
        elif _sum(history_dir / name) != expected:
            broken[name] = f"{name} is not the file that was recorded: its checksum is another"
    return broken


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
