"""The one way to add a line to a JSON-lines file that several processes of a run write; marks and faults are such."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.history.tables import FAULTS_FILE, MARKS_FILE, FaultEvent


def line_bytes(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "replace")


def append_line(path: Path, value: Mapping[str, Any], *, sync: bool = False) -> None:
    """Appends in one write, so lines of different processes never mix; ``sync`` returns once it is on disk."""
    data = line_bytes(value)
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        written = os.write(fd, data)
        while written < len(data):
            written += os.write(fd, data[written:])
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def append_mark(history_dir: Path, t_ns: int, name: str, value: str = "", detail: str = "") -> None:
    append_line(history_dir / MARKS_FILE, {"t_ns": t_ns, "name": name, "value": value, "detail": detail})


def append_fault(history_dir: Path, event: FaultEvent) -> None:
    """``index`` is the line's number, so it is not written."""
    line = {
        "t_ns": event.t_ns,
        "fault_id": event.fault_id,
        "fault": event.fault,
        "stage": event.stage.value,
        "targets": list(event.targets),
        "fidelity": event.fidelity,
        "detail": event.detail,
        "disruptive": event.disruptive,
    }
    append_line(history_dir / FAULTS_FILE, line)
