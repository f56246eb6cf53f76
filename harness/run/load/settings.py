"""What a load process is told: ``load.json``, named by ``GPU_HARNESS_LOAD``, and the schedule it points to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from sys import intern
from typing import Any
from zlib import crc32

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types

from harness.clock import NS_PER_S, RunClock
from harness.errors import BadInput, Where
from harness.run.load.api import Api
from harness.run.load.arrival import Arrival
from harness.run.load.limits import SendLimits

LOAD_ENV = "GPU_HARNESS_LOAD"
WORKER_ENV = "GPU_HARNESS_LOAD_WORKER"
"""Which of the run's load processes this one is, from 0; the share that it sends."""
GO_FILE = "go"
_SCHEDULE_COLUMNS = ("t_ns", "prompt_tokens", "output_tokens", "tenant", "session")
_MORE_COLUMNS = ("turn", "priority", "stream", "hang_up_tokens", "hang_up_ns", "prefix")
"""In the order of ``Arrival``; only in schedules that have something to say in them."""
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a schedule that one of several processes sends: each row is in exactly one, a session in one."""

    index: int = 0
    of: int = 1

    def has(self, row: int, session: str) -> bool:
        return crc32(session.encode() or row.to_bytes(8)) % self.of == self.index


@dataclass(frozen=True, slots=True)
class LoadSettings:
    schedule: Path
    api: Api
    records: Path
    start_ns: int
    """CLOCK_MONOTONIC of history time 0."""
    send: SendLimits
    seed: int
    retry_reset_reused: bool = False
    share: Share = Share()
    start_at_once: bool = False
    """Without waiting for the go of a supervisor."""

    @property
    def go(self) -> Path:
        """Created by the supervisor; holds the history time at which the schedule begins."""
        return self.records.parent / GO_FILE

    def begins_ns(self) -> int | None:
        """The history time at which the schedule begins, once that is known."""
        if self.start_at_once:
            return RunClock(self.start_ns).now_ns() + NS_PER_S // 2
        try:
            text = self.go.read_text()
        except FileNotFoundError:
            return None
        return int(text) if text.strip() else None

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> LoadSettings:
        path = env.get(LOAD_ENV)
        if not path:
            raise BadInput(
                f"{LOAD_ENV} is not set: this locustfile sends a schedule that `gpu-harness run` makes and hands over",
                hint="start it through `gpu-harness run EXPERIMENT`, or set the variable to the load.json of a run",
            )
        return cls.read(Path(path))

    @classmethod
    def read(cls, path: Path) -> LoadSettings:
        try:
            raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            known = {f.name for f in fields(SendLimits)}
            api, send = raw["api"], raw["send"]
            return cls(
                schedule=Path(raw["schedule"]),
                api=Api(**(api | {"ca_file": Path(api["ca_file"]) if api.get("ca_file") else None})),
                records=Path(raw["records"]),
                start_ns=int(raw["start_ns"]),
                send=SendLimits(**{k: float(v) for k, v in send.items() if k in known}),
                seed=int(raw["seed"]),
                retry_reset_reused=bool(send.get("retry_reset_reused", False)),
                share=Share(int(os.environ.get(WORKER_ENV, 0)), int(send.get("workers", 1))),
            )
        except OSError as error:
            raise BadInput(f"the load's settings cannot be read: {error.strerror}", where=Where(str(path))) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"the load's settings are not usable: {error!r}", where=Where(str(path))) from error


def read_arrivals(path: Path, share: Share | None = None) -> list[Arrival]:
    """A share (or all) of the schedule, in the order of its times; a row's number in the file is its request's id."""
    share = share or Share()
    arrivals: list[Arrival] = []
    row = 0
    try:
        with pq.ParquetFile(path) as file:
            more = set(_MORE_COLUMNS) <= set(file.schema_arrow.names)
            names = [*_SCHEDULE_COLUMNS, *(_MORE_COLUMNS if more else ())]
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=names, use_threads=False):
                columns = (batch.column(name).to_pylist() for name in names)
                for t_ns, prompt, output, tenant, session, *rest in zip(*columns, strict=True):
                    if share.has(row, session or ""):
                        text = intern(tenant or ""), intern(session or "")
                        arrivals.append(Arrival(row, t_ns, prompt, output, *text, *rest))
                    row += 1
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"the schedule cannot be read: {error}", where=Where(str(path))) from error
    return sorted(arrivals, key=lambda a: a.t_ns)
