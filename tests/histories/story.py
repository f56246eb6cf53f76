"""Tells a run in scenario seconds and yields the history that the harness would have recorded.

A story is told in parts, each of which stands on the one before: objects (``told_objects``), the cluster that they make
up (``told_cluster``), its traffic (``told_traffic``); here are faults, marks and the whole. Nothing here knows a check.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
from told_objects import EPOCH, NAMESPACE
from told_objects import Json as Json
from told_traffic import ToldTraffic

from harness.history.phases import compute_phases, phase_of
from harness.history.reader import History, empty_samples
from harness.history.requests import typed_requests
from harness.history.run_info import RunInfo
from harness.history.tables import (
    REQUEST_COLUMNS,
    REQUESTS_FILE,
    SAMPLE_COLUMNS,
    SERVER_TIME_MARK,
    VERSION_MARK,
    WALL_CLOCK_MARK,
    FaultEvent,
    FaultStage,
    Mark,
    ObjectEventType,
    Phase,
)
from harness.history.writer import HistoryWriter


@dataclass
class Story(ToldTraffic):
    """One run."""

    length_s: float = 600.0
    lag_limit_ms: float = 50.0
    ended: str = "completed"
    info: Json = field(default_factory=dict)
    """Overrides of RunInfo."""
    known: bool = True
    """Whether the recorder noted its time of day and the server's version."""
    _faults: list[FaultEvent] = field(default_factory=list)
    _marks: list[Mark] = field(default_factory=list)

    def fault(self, at_s: float, stage: FaultStage, *targets: str, **cells: Any) -> None:
        known = {"fault_id": "spot_interruption-1", "fault": "spot_interruption", "fidelity": "emulated"} | cells
        event = FaultEvent(len(self._faults), self.ns(at_s), stage=stage, targets=targets, **known)
        self._faults.append(event)

    def mark(self, at_s: float, name: str, value: str = "", detail: str = "") -> None:
        self._marks.append(Mark(len(self._marks), self.ns(at_s), name, value, detail))

    def server_time(self, at_s: float, ahead_s: float = 0.0, took_s: float = 0.001) -> None:
        """The API server was asked for its time of day, and answered at ``at_s``; the rest in clock seconds."""
        said = (EPOCH + timedelta(seconds=self.ns(at_s) / 1e9 + ahead_s)).replace(microsecond=0)
        self.mark(at_s, SERVER_TIME_MARK, said.isoformat(), f"{took_s:.3f}")

    def valid(self) -> Story:
        """Everything that makes a run valid, so that only the story's own trouble shows."""
        self.mark(0, "load_start")
        self.mark(0, "steady_state_before", "met")
        if not self._faults:
            for at_s, stage in ((-1, "planned"), (320, "injected"), (321, "observed"), (440, "ended"), (590, "healed")):
                self.fault(at_s, FaultStage(stage), "spot-1")
        if not self._requests:
            self.traffic(10, 20, 1, ("llm-a",))
        if not self._events:
            self.node("on-demand-1")
        if not any(what is ObjectEventType.ADDED for _, _, _, what, *_ in self._events):
            self.put(max(0.0, *(at_s for at_s, *_ in self._events)), "Event", "of-no-interest", {})
        return self

    def build(self) -> History:
        self._slice_events()
        phases = compute_phases(self.ns(0), self.ns(self.length_s), 60.0, self.time_scale, self._faults)
        requests = pd.DataFrame(self._requests, columns=list(REQUEST_COLUMNS), dtype=object)
        requests["phase"] = [phase_of(phases, t) for t in requests["intended_ns"]]
        samples = pd.DataFrame(self._samples, columns=list(SAMPLE_COLUMNS)) if self._samples else empty_samples()
        notes = ((WALL_CLOCK_MARK, EPOCH.isoformat()), (VERSION_MARK, "v1.37.2")) if self.known else ()
        noted = [Mark(len(self._marks) + i, 0, *note) for i, note in enumerate(notes)]
        return History(
            typed_requests(requests),
            self._recorded(),
            samples.astype(SAMPLE_COLUMNS),
            tuple(self._faults),
            (*self._marks, *noted),
            self._run(phases),
            None,
            None if self._ledger is None else tuple(self._ledger),
        )

    def _run(self, phases: tuple[Phase, ...]) -> RunInfo:
        run = RunInfo(
            seed=7,
            time_scale=self.time_scale,
            experiment="story.yaml",
            title="A spot interruption during a burst loses no stream",
            target="embedded",
            started_utc="2026-01-01T00:00:00Z",
            command="gpu-harness run story.yaml --seed 7",
            versions={"gpu-harness": "0.1.0"},
            commit="0123456789abcdef",
            load_start_ns=self.ns(0),
            load_end_ns=self.ns(self.length_s),
            warm_up_s=60.0,
            phases=phases,
            planned=len(self._requests),
            ended=self.ended,
            undo_planned=1,
            fidelity={"spot_interruption": "emulated"},
            real=("Locust", "Chaos Toolkit", "HTTP and SSE"),
            emulated=("control plane", "nodes", "cloud", "GPUs", "vLLM"),
            workload={"namespace": NAMESPACE, "selector": "app=llm", "service": "llm"},
            load_lag_limit_ms=self.lag_limit_ms,
        )
        return replace(run, **self.info)


def write_run(history: History, run_dir: Path) -> Path:
    """The history as the files of a run's folder, by the harness's own writer."""
    with HistoryWriter(run_dir / "history") as writer:
        for event in history.objects:
            writer.objects.write(
                event.t_ns, event.kind, event.type, event.object, since_ns=event.since_ns, reason=event.reason
            )
        for t_ns, source, name, labels, value in history.samples.itertuples(index=False):
            writer.samples.add(t_ns, source, name, value, json.loads(labels))
        for fault in history.faults:
            writer.fault(fault)
        for mark in history.marks:
            writer.mark(mark.t_ns, mark.name, mark.value, mark.detail)
        history.requests.to_parquet(run_dir / "history" / REQUESTS_FILE, index=False)
        history.run.write(writer.dir)
    return run_dir
