"""What the supervisor tells the load: ``load.json``, named by ``GPU_HARNESS_LOAD``, and the schedule it points to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types

from harness.errors import BadInput, Where
from harness.run.load.arrival import Arrival
from harness.run.load.limits import SendLimits

LOAD_ENV = "GPU_HARNESS_LOAD"
GO_FILE = "go"
_SCHEDULE_COLUMNS = ("t_ns", "prompt_tokens", "output_tokens", "tenant", "session")
_MORE_COLUMNS = ("turn", "priority", "stream", "hang_up_tokens", "hang_up_ns", "prefix")
"""Only in schedules that have something to say in them."""


@dataclass(frozen=True, slots=True)
class LoadSettings:
    schedule: Path
    url: str
    model: str
    records: Path
    start_ns: int
    """CLOCK_MONOTONIC of history time 0."""
    send: SendLimits
    seed: int

    @property
    def go(self) -> Path:
        """Created by the supervisor; holds the history time at which the schedule begins."""
        return self.records.parent / GO_FILE

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
            return cls(
                schedule=Path(raw["schedule"]),
                url=str(raw["url"]),
                model=str(raw["model"]),
                records=Path(raw["records"]),
                start_ns=int(raw["start_ns"]),
                send=SendLimits(**{k: float(v) for k, v in raw["send"].items() if k in known}),
                seed=int(raw["seed"]),
            )
        except OSError as error:
            raise BadInput(f"the load's settings cannot be read: {error.strerror}", where=Where(str(path))) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"the load's settings are not usable: {error!r}", where=Where(str(path))) from error


def read_arrivals(path: Path) -> list[Arrival]:
    """The schedule in the order of its times; a row's number is its request's id."""
    try:
        names = pq.read_schema(path).names
        more = [name for name in _MORE_COLUMNS if name in names]
        table = pq.read_table(path, columns=[*_SCHEDULE_COLUMNS, *more], use_threads=False)
    except (OSError, ValueError) as error:
        raise BadInput(f"the schedule cannot be read: {error}", where=Where(str(path))) from error
    columns = [table.column(name).to_pylist() for name in _SCHEDULE_COLUMNS]
    arrivals = [
        Arrival(i, int(t), int(prompt), int(output), str(tenant or ""), str(session or ""))
        for i, (t, prompt, output, tenant, session) in enumerate(zip(*columns, strict=True))
    ]
    if len(more) == len(_MORE_COLUMNS):
        rest = zip(*(table.column(name).to_pylist() for name in _MORE_COLUMNS), strict=True)
        arrivals = [
            replace(
                arrival, turn=turn, priority=priority, stream=bool(stream), hang_up_tokens=tokens, hang_up_ns=time_ns,
                prefix=prefix,
            )
            for arrival, (turn, priority, stream, tokens, time_ns, prefix) in zip(arrivals, rest, strict=True)
        ]  # fmt: skip
    return sorted(arrivals, key=lambda a: a.t_ns)
