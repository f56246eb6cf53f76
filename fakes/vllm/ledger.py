"""What one server sent, request by request: a second book, independent of what any client wrote down."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class LedgerEntry:
    """``finish`` is the finish_reason sent, ``error`` after an error event, ``left`` when the client went away first,
    and None while the request is in flight, or for good when the server was killed or hung."""

    prompt_tokens: int
    sent_tokens: int = 0
    finish: str | None = None


class Ledger:
    """By the id the server answered with. It lives as long as its container object, past the process's end."""

    def __init__(self) -> None:
        self.entries: dict[str, LedgerEntry] = {}

    def open(self, request_id: str, prompt_tokens: int) -> LedgerEntry:
        entry = LedgerEntry(prompt_tokens)
        self.entries[request_id] = entry
        return entry
