"""A schedule goes to disk and back unchanged, and notices when it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from harness.clock import NS_PER_S
from harness.errors import BadInput
from harness.plan.schedule import Schedule, gap_cv, rises_ns, token_quantiles


def schedule(t_ns: tuple[int, ...] = (0, 5, NS_PER_S)) -> Schedule:
    n = len(t_ns)
    prompt, output = np.arange(1, n + 1, dtype=np.int64), np.full(n, 9, dtype=np.int64)
    return Schedule(np.array(t_ns, dtype=np.int64), prompt, output, np.full(n, "a"), np.full(n, ""), (0, 5))


def test_there_and_back(tmp_path: Path) -> None:
    schedule().write(tmp_path / "s.parquet")
    read = Schedule.read(tmp_path / "s.parquet")
    assert read.canonical_bytes() == schedule().canonical_bytes()
    assert (read.rows, read.load_steps_ns()) == (3, (0, 5))
    assert read.tenant.tolist() == ["a"] * 3


def test_columns_for_the_load(tmp_path: Path) -> None:
    schedule().write(tmp_path / "s.parquet")
    table = pd.read_parquet(tmp_path / "s.parquet")
    assert list(table.columns) == ["t_ns", "prompt_tokens", "output_tokens", "tenant", "session"]
    assert table["t_ns"].dtype == np.int64


def test_every_column_is_in_the_checksum() -> None:
    base = schedule()
    sums = {base.sha256()}
    for name in ("t_ns", "prompt_tokens", "output_tokens", "tenant", "session"):
        columns = {n: getattr(base, n).copy() for n in ("t_ns", "prompt_tokens", "output_tokens", "tenant", "session")}
        columns[name][1] = columns[name][1] + (1 if columns[name].dtype == np.int64 else "")
        if columns[name].dtype != np.int64:
            columns[name] = np.array(["a", "b", "c"])
        sums.add(Schedule(**columns, steps_ns=(0, 5)).sha256())
    assert len(sums) == 6


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    schedule().write(tmp_path / "s.parquet")
    table = pq.read_table(tmp_path / "s.parquet")
    pq.write_table(table.slice(0, 2), tmp_path / "s.parquet")
    with pytest.raises(BadInput, match="was changed after it was written"):
        Schedule.read(tmp_path / "s.parquet")


@pytest.mark.parametrize("content", [b"", b"not parquet"])
def test_no_schedule(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s.parquet").write_bytes(content)
    with pytest.raises(BadInput, match="no readable schedule"):
        Schedule.read(tmp_path / "s.parquet")


def test_stats_count_over_the_whole_duration() -> None:
    stats = schedule().stats(6.0)
    assert (stats["rows"], stats["duration_s"], stats["mean_per_s"]) == (3, 6.0, 0.5)
    assert (stats["peak_per_s"], stats["peak_to_mean"]) == (2, 4.0)
    assert stats["prompt_tokens"] == {"min": 1, "p50": 2, "p90": 3, "p95": 3, "p99": 3, "max": 3, "sum": 6}


def test_figures_of_nothing() -> None:
    nothing = np.array([], dtype=np.int64)
    assert (gap_cv(nothing), token_quantiles(nothing), rises_ns(nothing, 5.0)) == (0.0, {"sum": 0}, (0,))
    assert gap_cv(np.zeros(5, dtype=np.int64)) == 0.0


def test_rises_are_seen_in_the_rows() -> None:
    counts = [2, 2, 2, 20, 20, 2, 2, 9, 9, 2, 2, 2, 2, 2, 25, 2]
    t = np.array([s * NS_PER_S + i for s, n in enumerate(counts) for i in range(n)], dtype=np.int64)
    assert [t // NS_PER_S for t in rises_ns(t, len(counts))] == [0, 3, 14]
