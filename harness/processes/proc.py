"""What Linux says of a process under ``/proc``: the proof that it is ours, and that it really stopped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """``state`` is one letter (R, S, D, T, Z, X); ``start_ticks`` tells a process from a later one of the same id."""

    state: str
    start_ticks: int

    @property
    def stopped(self) -> bool:
        return self.state == "T"

    @property
    def over(self) -> bool:
        return self.state in "ZX"


def stat(pid: int) -> ProcessStat | None:
    """None when there is no such process."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name stands in brackets and may itself hold brackets and spaces.
    fields = text[text.rindex(")") + 1 :].split()
    return ProcessStat(fields[0], int(fields[19]))


def command_line(pid: int) -> list[str]:
    """Empty when there is no such process."""
    return _strings(pid, "cmdline")


def environment(pid: int) -> dict[str, str]:
    """As it was when the process started; empty when it may not be read."""
    return dict(entry.split("=", 1) for entry in _strings(pid, "environ") if "=" in entry)


def _strings(pid: int, name: str) -> list[str]:
    try:
        data = (_PROC / str(pid) / name).read_bytes()
    except OSError:
        return []
    return [part.decode(errors="replace") for part in data.split(b"\0") if part]
