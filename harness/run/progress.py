"""How far a run has come, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field


class Stopped(Exception):
    """The run was asked to stop, or cannot go on. ``ended`` is a RunInfo ending."""

    def __init__(self, ended: str, detail: str, lines: list[str] | None = None) -> None:
        super().__init__(detail)
        self.ended = ended
        self.detail = detail
        self.lines = lines or []


@dataclass(slots=True)
class Progress:
    """What the end of a run needs to know of its course."""

    load_start_ns: int = 0
    load_end_ns: int = 0
    ended: str = "completed"
    ended_detail: str = ""
    undo_planned: int = 0
    undo_left: tuple[str, ...] = ()
    lines: list[str] = field(default_factory=list)
