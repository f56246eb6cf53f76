from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.checks.rows import Rows
from harness.history.requests import LoadRecords, build_requests, empty_requests, read_records, typed_requests
from harness.history.tables import REQUEST_COLUMNS, Outcome, Phase
from harness.plan.schedule import COLUMNS, MORE_COLUMNS, More

MS = 1_000_000
PHASES = (Phase("warm_up", 100 * MS, 200 * MS), Phase("steady", 200 * MS, 500 * MS))


@dataclass
class ThreeArrivals:
    t_ns: list[int] = field(default_factory=lambda: [0, 50 * MS, 150 * MS])
    prompt_tokens: list[int] = field(default_factory=lambda: [11, 12, 13])
    output_tokens: list[int] = field(default_factory=lambda: [4, 5, 6])
    tenant: list[str] = field(default_factory=lambda: ["", "", "blue"])
    session: list[str] = field(default_factory=lambda: ["", "", ""])
    more: More | None = None


END = {"e": "end", "id": 0, "request_id": 0, "attempt": 1, "intended_ns": 1, "sent_ns": 101 * MS, "outcome": "ok"}
END |= {
    "end_ns": 140 * MS,
    "chunks": 4,
    "done": True,
    "status": 200,
    "pod": "llm-1",
    "reused": True,
    "later": "ignored",
}


def write(path: Path, *records: dict[str, Any], tail: str = "") -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records) + tail)
    return path


def test_every_arrival_has_one_row_and_one_outcome(tmp_path: Path) -> None:
    path = write(
        tmp_path / "records.jsonl",
        {"e": "ready", "t_ns": 1},
        {"e": "sent", "id": 0, "t_ns": 101 * MS},
        END,
        {"e": "sent", "id": 1, "t_ns": 151 * MS},
        {"e": "finished", "t_ns": 9},
    )
    table = build_requests(ThreeArrivals(), path, PHASES)
    assert {c: str(t) for c, t in table.dtypes.items()} == {
        c: str(pd.Series(dtype=t).dtype) for c, t in REQUEST_COLUMNS.items()
    }
    assert table["outcome"].tolist() == ["ok", "unfinished", "not_sent"]
    assert table["request_id"].tolist() == [0, 1, 2]
    assert table["intended_ns"].tolist() == [100 * MS, 150 * MS, 250 * MS]  # the plan's word, not the record's
    assert table["phase"].tolist() == ["warm_up", "warm_up", "steady"]
    assert table["planned_output_tokens"].tolist() == [4, 5, 6]
    assert table["pod"][0] == "llm-1" and pd.isna(table["pod"][1])
    assert table["sent_ns"][1] == 151 * MS and pd.isna(table["end_ns"][1]) and pd.isna(table["sent_ns"][2])
    assert table["tenant"][2] == "blue"
    assert "stopped before" in table["reason"][2]


def test_a_load_that_died_or_never_came_up_is_named(tmp_path: Path) -> None:
    died = build_requests(ThreeArrivals(), write(tmp_path / "a", {"e": "ready", "t_ns": 1}), PHASES)
    absent = build_requests(ThreeArrivals(), tmp_path / "missing", (), load_start_ns=7)
    assert set(died["reason"]) == {"the load process died before this arrival was sent"}
    assert set(absent["reason"]) == {"the load process never became ready"}
    assert absent["intended_ns"].tolist() == [7, 7 + 50 * MS, 7 + 150 * MS]
    assert set(absent["outcome"]) == {Outcome.NOT_SENT}


def test_the_first_of_two_ends_counts_and_the_second_is_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "records.jsonl", END, END | {"outcome": "stalled"})
    records = read_records(path)
    assert records.duplicate_ends == 1
    assert build_requests(ThreeArrivals(), records, PHASES)["outcome"][0] == "ok"


def test_a_cut_tail_loses_only_itself(tmp_path: Path) -> None:
    path = write(tmp_path / "records.jsonl", END, tail='{"e":"end","id":1,"outc')
    records = read_records(path)
    assert (len(records.ends), records.unreadable_lines) == (1, 1)


def test_half_a_surrogate_in_a_servers_words_can_be_written(tmp_path: Path) -> None:
    hostile = END | {"outcome": "error_in_stream", "reason": "bad \ud800 text"}
    table = build_requests(ThreeArrivals(), write(tmp_path / "r", hostile), PHASES)
    table.to_parquet(tmp_path / "t.parquet", index=False)
    assert table["reason"][0] == "bad ? text"


def test_parquet_keeps_the_types(tmp_path: Path) -> None:
    table = build_requests(ThreeArrivals(), write(tmp_path / "r", END), PHASES)
    table.to_parquet(tmp_path / "t.parquet", index=False)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "t.parquet").astype(REQUEST_COLUMNS), table)


def test_an_empty_table_has_the_types_too() -> None:
    assert list(empty_requests().columns) == list(REQUEST_COLUMNS)
    assert str(empty_requests()["sent_ns"].dtype) == "Int64"


def test_a_table_of_an_older_run_has_nulls_where_nothing_was_said(tmp_path: Path) -> None:
    new = ["turn", "prefix", "priority", "stream", "hang_up_tokens", "hang_up_ns"]
    old = build_requests(ThreeArrivals(), LoadRecords(), PHASES).drop(columns=new)
    old.to_parquet(tmp_path / "old.parquet")
    table = typed_requests(pd.read_parquet(tmp_path / "old.parquet"))
    assert list(table.columns) == list(REQUEST_COLUMNS)
    assert table[new].isna().all().all()
    assert all(row.streamed for row in Rows(table))


def test_what_the_schedule_says_of_requests_is_in_their_rows() -> None:
    more = More(
        *(np.array(column, dtype=np.int64) for column in ([1, 2, 0], [0, 0, -3], [1, 1, 0], [0, 5, 0], [0, 0, 7])),
        prefix=np.array(["a:3", "a:5", ""]),
    )
    plan = ThreeArrivals(more=more)
    columns = {name: getattr(plan, name) for name in COLUMNS} | {name: getattr(more, name) for name in MORE_COLUMNS}
    for schedule in (plan, pd.DataFrame(columns)):
        table = build_requests(schedule, LoadRecords(), PHASES)
        assert table["turn"].tolist() == [1, 2, 0]
        assert table["stream"].tolist() == [True, True, False]
        assert table["prefix"].tolist() == ["a:3", "a:5", ""]
        assert (table["priority"].tolist(), table["hang_up_ns"].tolist()) == ([0, 0, -3], [0, 0, 7])
