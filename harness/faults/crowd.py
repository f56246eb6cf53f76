"""Requests that a fault sends by itself, beside the planned load: they press, and nobody judges them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Ask:
    """One chat of a crowd. ``leaves_after_s``: clock seconds after which its client hangs up; 0 never."""

    prompt_tokens: int
    output_tokens: int
    leaves_after_s: float = 0.0


@dataclass(slots=True)
class Tally:
    """What became of a crowd so far."""

    sent: int = 0
    answered: int = 0
    refused: int = 0
    left: int = 0


class Crowd(Protocol):
    async def send(self, ask: Ask, tally: Tally) -> None:
        """Returns when the chat has ended, whatever its end; never raises for what the service does."""
        ...
