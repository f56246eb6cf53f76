"""Each fault's life and the run's marks, as lines under ``history/``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.faults.port import Clock
from harness.history.jsonl import append_fault, append_mark
from harness.history.tables import FaultEvent, FaultStage


class FaultLog:
    """Stamps and appends fault events and marks."""

    def __init__(self, run_dir: Path, clock: Clock) -> None:
        self._history = run_dir / "history"
        self._clock = clock

    def write(
        self,
        fault_id: str,
        fault: str,
        stage: FaultStage,
        *,
        targets: Sequence[str] = (),
        fidelity: str = "",
        detail: str = "",
        disruptive: bool = True,
    ) -> None:
        event = FaultEvent(
            0, self._clock.now_ns(), fault_id, fault, stage, tuple(targets), fidelity, detail, disruptive
        )
        append_fault(self._folder(), event)

    def mark(self, name: str, value: str = "", detail: str = "") -> None:
        append_mark(self._folder(), self._clock.now_ns(), name, value, detail)

    def _folder(self) -> Path:
        self._history.mkdir(parents=True, exist_ok=True)
        return self._history
