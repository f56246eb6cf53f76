"""Each fault's life and the run's marks, as lines under ``history/``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.faults.jsonl import append_line
from harness.faults.port import Clock
from harness.history.tables import FAULTS_FILE, MARKS_FILE, FaultStage


class FaultLog:
    """Stamps and appends fault events. ``index`` is the line number, so it is not written."""

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
        line = {
            "t_ns": self._clock.now_ns(),
            "fault_id": fault_id,
            "fault": fault,
            "stage": stage.value,
            "targets": list(targets),
            "fidelity": fidelity,
            "detail": detail,
            "disruptive": disruptive,
        }
        append_line(self._file(FAULTS_FILE), line)

    def mark(self, name: str, value: str = "", detail: str = "") -> None:
        append_line(
            self._file(MARKS_FILE), {"t_ns": self._clock.now_ns(), "name": name, "value": value, "detail": detail}
        )

    def _file(self, name: str) -> Path:
        self._history.mkdir(parents=True, exist_ok=True)
        return self._history / name
