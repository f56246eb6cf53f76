"""A row of the verdict matrix."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from matrix_mishaps import Mishap

from fakes.config import PlantedBug

ROOT = Path(__file__).resolve().parents[2]
ALL_CHECKS = "experiments/matrix/all-checks.yaml"


@dataclass(frozen=True, slots=True)
class Row:
    """``bugs`` are planted into ``experiment``; without any the experiment itself is what is wrong. The first is the
    row's own; a second one only gives it the occasion to do harm."""

    breaks: str
    check: str
    words: tuple[str, ...]
    bugs: tuple[PlantedBug, ...] = ()
    experiment: str = ALL_CHECKS
    status: str = "fail"
    real: bool = False
    """One of those that are short and telling enough to be run for real, and in every run of the tests."""
    also: tuple[tuple[str, str], ...] = ()
    """Other checks whose promise it breaks too, each with a word of what they must say."""
    innocent: tuple[str, ...] = ()
    """Checks that it must not make fail: what they promise was kept."""
    mishap: Mishap | None = None
    """What befalls the run's records after it, where it is the harness itself that is wrong."""

    @property
    def name(self) -> str:
        if self.mishap is not None:
            return self.mishap.__name__
        return self.bugs[0].value if self.bugs else Path(self.experiment).stem

    def breaks_promise_of(self, check: str) -> bool:
        return check == self.check or any(check == other for other, _ in self.also)
