"""What one server sent, request by request: a second book, independent of what any client wrote down."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Note = Callable[[dict[str, object]], None]


@dataclass(slots=True)
class LedgerEntry:
    """``finish`` is the finish_reason sent, ``error`` after an error event, ``left`` when the client went away first,
    and None while the request is in flight, or for good when the server was killed or hung."""

    prompt_tokens: int
    sent_tokens: int = 0
    sent_events: int = 0
    """Events with text that were written to the stream; 0 for an answer that is no stream."""
    finish: str | None = None


class Ledger:
    """By the id the server answered with. It lives as long as its container object, past the process's end.

    ``note`` gets a line when a request is opened and one when the server is through with it, so that a book on disk
    shows an answer that was begun even where nobody lived to end it.
    """

    def __init__(self, note: Note | None = None) -> None:
        self.entries: dict[str, LedgerEntry] = {}
        self._note = note

    def open(self, request_id: str, prompt_tokens: int) -> LedgerEntry:
        entry = LedgerEntry(prompt_tokens)
        self.entries[request_id] = entry
        if self._note is not None:
            self._note({"e": "open", "id": request_id, "prompt_tokens": prompt_tokens})
        return entry

    def close(self, request_id: str, entry: LedgerEntry) -> None:
        """Whatever becomes of it, no more is sent."""
        if self._note is not None:
            sent = {"sent_tokens": entry.sent_tokens, "sent_events": entry.sent_events, "finish": entry.finish}
            self._note({"e": "close", "id": request_id, **sent})


class LedgerFile:
    """The ledgers of all servers of a world in one file of JSON lines, each written at once."""

    def __init__(self, path: Path) -> None:
        self._fd: int | None = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def of(self, pod: str) -> Note:
        def note(line: dict[str, object]) -> None:
            if self._fd is not None:
                os.write(self._fd, json.dumps({"pod": pod, **line}, separators=(",", ":")).encode() + b"\n")

        return note

    def close(self) -> None:
        """For a process that outlives the world; what is noted after it is dropped."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
