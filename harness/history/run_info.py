"""What a run was: seed, command, versions, times and how it ended. One JSON file, ``history/run.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from harness.history.tables import RUN_FILE, Phase

REAL_KUBELETS = ("node", "kind")
"""Targets whose kubelets know no time scale: the seconds of a pod's spec were divided before it was applied."""
ENDINGS = ("completed", "interrupted", "child_died", "aborted", "error")


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Written by the supervisor at the end of a run, whatever the end was. Times in ``*_ns`` are history time."""

    seed: int = 0
    """Of arrivals, lengths and targets."""
    time_scale: float = 1.0
    """Scenario seconds per clock second."""
    experiment: str = ""
    """Its place under ``spec/``."""
    title: str = ""
    """Of the experiment."""
    target: str = ""
    """Which cluster it ran on."""
    started_utc: str = ""
    """Wall time of the start; no clock of anything else."""
    command: str = ""
    """How to repeat it."""
    commit: str = ""
    """Of the harness; empty outside of a repository."""
    dirty: bool = False
    """Whether there were local changes."""
    versions: dict[str, str] = field(default_factory=dict)
    """Of Python and of what the run stands on."""
    load_start_ns: int = 0
    """When the schedule began: scenario second 0."""
    load_end_ns: int = 0
    """When the load was over."""
    warm_up_s: float = 0.0
    """Scenario seconds that no check but those of the whole run looks at."""
    phases: tuple[Phase, ...] = ()
    """``name``, ``start_ns`` and ``end_ns`` of each."""
    planned: int = 0
    """Requests in the schedule."""
    planned_faults: tuple[str, ...] = ()
    """Ids by the plan, so that a fault which left no trace at all is missed."""
    ended: str = "error"
    """``completed``, ``interrupted``, ``child_died``, ``aborted`` or ``error``."""
    ended_detail: str = ""
    """Why it ended so."""
    undo_planned: int = 0
    """Changes that the harness made to the cluster."""
    undo_left: tuple[str, ...] = ()
    """Those that could not be undone."""
    fidelity: dict[str, str] = field(default_factory=dict)
    """Of each injected fault: native or emulated."""
    real: tuple[str, ...] = ()
    """What of the target was the real thing."""
    emulated: tuple[str, ...] = ()
    """What of it was not."""
    workload: dict[str, str] = field(default_factory=dict)
    """Namespace, selector and service under test."""
    load_lag_limit_ms: float = 0.0
    """How late sends may be at p99."""
    load_workers: int = 1
    """Processes that shared the schedule."""
    object_events: int | None = None
    """How many lines objects.jsonl.zst was given; None where nobody counted."""
    sealed: bool = False
    """Whether checksums of the files were written beside it; runs of old have none."""

    @property
    def kubelet_s(self) -> float:
        """Scenario seconds that one second lasts which a kubelet counts: grace, preStop."""
        return self.time_scale if self.target in REAL_KUBELETS else 1.0

    duplicate_ends: int = 0
    """How many ends the load recorded for requests that had ended before; each is a defect of the harness."""
    prices_per_hour: dict[str, float] = field(default_factory=dict)
    """What a node costs, by its pool (or instance type); empty where nobody stated it."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> RunInfo:
        """Raises ``ValueError`` when the text is no run.json of ours."""
        try:
            raw: Any = json.loads(text)
        except RecursionError:
            raise ValueError("run.json is nested too deep") from None
        if not isinstance(raw, dict):
            raise ValueError(f"run.json holds a {type(raw).__name__}, not an object")
        known = {f.name for f in fields(cls)}
        if unknown := set(raw) - known:
            raise ValueError(f"run.json has unknown keys: {', '.join(sorted(unknown))}")
        try:
            return cls(**_typed(raw))
        except (TypeError, KeyError) as error:
            raise ValueError(f"run.json: {error}") from error

    @classmethod
    def read(cls, history_dir: Path) -> RunInfo:
        return cls.from_json((history_dir / RUN_FILE).read_text(encoding="utf-8"))

    def write(self, history_dir: Path) -> None:
        """Replaces the file in one step, so that a reader never sees half of it."""
        if self.ended not in ENDINGS:
            raise ValueError(f"a run ends as one of {', '.join(ENDINGS)}, not {self.ended!r}")
        part = history_dir / (RUN_FILE + ".part")
        part.write_text(self.to_json(), encoding="utf-8")
        part.replace(history_dir / RUN_FILE)


def _typed(raw: Mapping[str, Any]) -> dict[str, Any]:
    values = dict(raw)
    if "phases" in values:
        values["phases"] = tuple(Phase(**phase) for phase in values["phases"])
    for name in ("planned_faults", "undo_left", "real", "emulated"):
        if name in values:
            values[name] = tuple(values[name])
    return values
