"""What a load took of a recorded trace: which cut, how much of it, how often."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TraceUse:
    """A cut and what became of it: how many rows arrived, were cut down to the profile's limits, or left out as failed.
    ``start_s`` and ``duration_s`` are the whole cut in trace seconds, ``lasts_s`` the clock seconds in which its rows
    could arrive: of the load, or of the part of a sequence."""

    file: str
    start_s: float
    duration_s: float
    speed: float
    rows: int
    lasts_s: float
    shortened_rows: int = 0
    failed_rows: int = 0
    scale: float = 1.0
    loop: bool = False

    @property
    def cut_clock_s(self) -> float:
        return self.duration_s / self.speed

    @property
    def rounds(self) -> float:
        """How often the cut was played; below 1 where the load ends within it."""
        rounds = self.lasts_s / self.cut_clock_s
        return rounds if self.loop else min(1.0, rounds)

    def in_words(self) -> str:
        text = f"{self.file}, trace seconds {self.start_s:g} to {self.start_s + self._played_s():g}"
        if self.rounds < 1 - _NOTHING:
            text += f" (the load ends there; the cut goes to {self.start_s + self.duration_s:g})"
        text += f" at speed {self.speed:g}"
        if self.scale != 1:
            text += f", {self.scale:g} times its rate"
        if self.loop:
            text += f", {self.rounds:.1f} rounds in a loop"
        elif self.lasts_s - self.cut_clock_s > _NOTICEABLE_S:
            text += f"; rows end at {self.cut_clock_s:.4g} of {self.lasts_s:g} clock s"
        if self.failed_rows:
            text += f"; {self.failed_rows} failed rows left out"
        return f"{text}; {self.shortened_rows} rows shortened" if self.shortened_rows else text

    def _played_s(self) -> float:
        return self.duration_s * min(1.0, self.rounds)


_NOTHING = 1e-9
_NOTICEABLE_S = 1.0
"""An end of the rows nearer to the load's is as good as none."""
