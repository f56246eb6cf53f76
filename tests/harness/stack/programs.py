"""Small programs that stand for the real ones: files that can be found, asked for a version, and started."""

from __future__ import annotations

import sys
from pathlib import Path


def versioned(folder: Path, name: str, says: str) -> Path:
    """A program that says ``says`` to whatever it is asked."""
    return script(folder, name, f"#!/bin/sh\necho '{says}'\n")


def python_program(folder: Path, name: str, body: str) -> Path:
    return script(folder, name, f"#!{sys.executable}\n{body}")


def script(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path
