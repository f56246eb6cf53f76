"""The recorded traces that a load profile names: rows that arrive, and lengths to draw from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.clock import NS_PER_S
from harness.plan.chance import Chance
from harness.plan.trace import TraceCut, TraceRows, read_cut
from harness.plan.trace_row import ROWS_MAX, too_many
from harness.plan.traceuse import TraceUse
from harness.spec.arrivals import TraceArrivals
from harness.spec.document import find_file

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Replayed:
    """Arrivals of a cut on the clock, and for each the number of its row in the cut and the loop it belongs to."""

    t_ns: Numbers
    row: Numbers
    loop: Numbers


def replay(rows: TraceRows, cut: TraceCut, lasts_ns: int | None) -> Replayed:
    """The rows at the cut's speed; where it loops, again and again until ``lasts_ns``."""
    trace_ns = np.array(rows.t_ns, dtype=np.int64)
    speed = cut.speed
    once = trace_ns if speed == 1 else np.array([round(t / speed) for t in trace_ns.tolist()], dtype=np.int64)
    count = len(once)
    index = np.arange(count, dtype=np.int64)
    if not cut.loop or lasts_ns is None:
        return Replayed(once, index, np.zeros(count, dtype=np.int64))
    period_ns = round(rows.seconds / speed * NS_PER_S)
    if cut.duration_s is None and count > 1:
        # A cut to the last row has no end of its own; a mean gap keeps the seam from being two requests at once.
        period_ns += period_ns // (count - 1)
    loops = max(1, math.ceil(lasts_ns / max(1, period_ns)))
    if loops * count > ROWS_MAX:
        raise too_many("the trace in a loop", ROWS_MAX)
    turn = np.repeat(np.arange(loops, dtype=np.int64), count)
    return Replayed(np.tile(once, loops) + turn * period_ns, np.tile(index, loops), turn)


class Traces:
    """Rows of all traces that arrivals took, numbered one after another, and lengths of whole files. ``profile`` is
    the file that names them."""

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._lengths: dict[Path, TraceRows] = {}
        self.prompt_tokens: list[int] = []
        self.output_tokens: list[int] = []
        self.prefix: list[str] = []
        self.session: list[str] = []
        self.tenant: list[str] = []
        self.used: list[TraceUse] = []

    def arrive(self, arrivals: TraceArrivals, lasts_ns: int, seed: int, stream: str) -> tuple[Numbers, Numbers]:
        """Times and row numbers. Sessions of different streams and loops are different sessions."""
        cut = TraceCut(
            self._find(arrivals.file), arrivals.start_s, arrivals.duration_s, arrivals.speed, arrivals.scale,
            arrivals.loop,
        )  # fmt: skip
        rows = read_cut(cut, Chance(seed, f"trace{stream}"))
        came = replay(rows, cut, lasts_ns)
        within = came.t_ns < lasts_ns
        first = len(self.prompt_tokens)
        for index, loop in zip(came.row[within].tolist(), came.loop[within].tolist(), strict=True):
            self.prompt_tokens.append(rows.prompt_tokens[index])
            self.output_tokens.append(rows.output_tokens[index])
            self.prefix.append(text_at(rows.prefix, index))
            session = text_at(rows.session, index)
            self.session.append(f"{session}{stream}{f'.l{loop}' if loop else ''}" if session else "")
            self.tenant.append(text_at(rows.tenant, index))
        count = len(self.prompt_tokens) - first
        self.used.append(use_of(cut, rows, count, lasts_ns / NS_PER_S))
        return came.t_ns[within], np.arange(first, first + count, dtype=np.int64)

    def lengths(self, file: str) -> TraceRows:
        """All rows of a file with an answer."""
        path = self._find(file)
        if path not in self._lengths:
            self._lengths[path] = read_cut(TraceCut(path), Chance(0, "whole"))
        return self._lengths[path]

    def _find(self, file: str) -> Path:
        """Where no file is found, the one beside the profile is meant, and reading it says so."""
        return find_file(file, self._profile) or self._profile.parent / file


def use_of(cut: TraceCut, rows: TraceRows, arrived: int, lasts_s: float, shortened: int = 0) -> TraceUse:
    return TraceUse(
        file=cut.file.name, start_s=cut.start_s, duration_s=rows.seconds, speed=cut.speed, rows=arrived,
        lasts_s=lasts_s, shortened_rows=shortened, failed_rows=rows.failed_rows, scale=cut.scale, loop=cut.loop,
    )  # fmt: skip


def text_at(column: list[str], index: int) -> str:
    """Columns of texts are only as long as their last row with one."""
    return column[index] if index < len(column) else ""
