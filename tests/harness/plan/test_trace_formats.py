"""Each format of trace: what is read, what is refused with file and line, and that rows stream."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.clock import NS_PER_S
from harness.errors import BadInput
from harness.plan.chance import Chance
from harness.plan.trace import TraceCut, TraceRows, read_cut, read_rows

BURST_6 = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
BURST_8 = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens"


def write(tmp_path: Path, *lines: str, name: str = "trace.csv") -> Path:
    path = tmp_path / name
    path.write_text("\n".join(lines))
    return path


def cut(path: Path, seed: int = 1, **how: float) -> TraceRows:
    return read_cut(TraceCut(path, **how), Chance(seed, "trace"))


def expect_mistake(path: Path, line: int, key: str | None, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        list(read_rows(path))
    where = caught.value.where
    assert where is not None
    assert (where.file, where.line, where.key) == (str(path), line, key), caught.value
    assert says in caught.value.message
    assert caught.value.hint


class TestBurstGpt:
    def test_six_columns(self, tmp_path: Path) -> None:
        path = write(tmp_path, BURST_6, "5,ChatGPT,472,18,490,Conversation log", "45,GPT-4,1087,230,1317,API log", "")
        rows = list(read_rows(path))
        assert [(r.line, r.t_ns, r.prompt_tokens, r.output_tokens, r.session) for r in rows] == [
            (2, 0, 472, 18, ""), (3, 40 * NS_PER_S, 1087, 230, ""),
        ]  # fmt: skip

    def test_eight_columns_have_sessions_and_fractions(self, tmp_path: Path) -> None:
        path = write(
            tmp_path, BURST_8, "19440110.0,a,3.1,GPT-4,10,20,30,Conversation log",
            "19440111.25,a,1.0,GPT-4,40,20,60,Conversation log", "19440112.0,b,0,GPT-4,7,0,7,API log",
        )  # fmt: skip
        rows = list(read_rows(path))
        assert [(r.t_ns, r.session) for r in rows] == [(0, "a"), (1_250_000_000, "a"), (2 * NS_PER_S, "b")]

    def test_rows_that_the_service_failed_are_left_out_and_counted(self, tmp_path: Path) -> None:
        rows = cut(write(tmp_path, BURST_6, "5,ChatGPT,472,0,472,API log", "6,ChatGPT,9,3,12,API log"))
        assert (list(rows.prompt_tokens), rows.failed_rows) == ([9], 1)

    @pytest.mark.parametrize(
        "row, key, says",
        [
            ("x,GPT-4,1,2,3,API log", "Timestamp", '"x" is not a time'),
            ("-3,GPT-4,1,2,3,API log", "Timestamp", "is not a time"),
            ("7,GPT-4,,2,3,API log", "Request tokens", '"" is not a number of tokens'),
            ("7,GPT-4,1,2.5,3,API log", "Response tokens", '"2.5"'),
            ("7,GPT-4", None, "has 2 fields"),
            ("1,GPT-4,1,2,3,API log", "Timestamp", "is earlier than the row before it"),
        ],
    )
    def test_an_unreadable_row_is_named(self, tmp_path: Path, row: str, key: str | None, says: str) -> None:
        expect_mistake(write(tmp_path, BURST_6, "5,GPT-4,1,2,3,API log", row), 3, key, says)


class TestMooncake:
    ROWS = (
        {"timestamp": 0, "input_length": 1200, "output_length": 52, "hash_ids": [0, 1, 2]},
        {"timestamp": 3000, "input_length": 1500, "output_length": 26, "hash_ids": [0, 1, 7]},
        {"timestamp": 3000, "input_length": 600, "output_length": 5, "hash_ids": [0, 9]},
        {"timestamp": 6000, "input_length": 2000, "output_length": 5, "hash_ids": [0, 1, 7, 8]},
    )

    def lines(self, *more: str) -> list[str]:
        return [*(json.dumps(row) for row in self.ROWS), *more]

    def test_leading_ids_become_shared_beginnings(self, tmp_path: Path) -> None:
        rows = cut(write(tmp_path, *self.lines(), name="t.jsonl"))
        assert list(rows.t_ns) == [0, 3 * NS_PER_S, 3 * NS_PER_S, 6 * NS_PER_S]
        assert rows.prefix == ["h0:1200", "h0:1024+h7:476", "h0:512+h9:88", "h0:1024+h7:512+h8:464"]

    def test_only_the_cut_s_rows_count(self, tmp_path: Path) -> None:
        rows = cut(write(tmp_path, *self.lines(), name="t.jsonl"), start_s=3.0)
        assert rows.prefix == ["h0:1500", "h0:512+h9:88", "h0:1536+h8:464"]

    @pytest.mark.parametrize(
        "line, key, says",
        [
            ('{"timestamp": 7000, "input_length": 5, "output_length"', None, "is not JSON"),
            ("[1]", None, "is no row of a trace"),
            ('{"input_length": 5, "output_length": 5}', "timestamp", "nothing is not a time"),
            ('{"timestamp": true, "input_length": 5, "output_length": 5}', "timestamp", "true is not a time"),
            ('{"timestamp": 7000, "input_length": 0, "output_length": 5}', "input_length", "0 is not a number"),
            ('{"timestamp": 7000, "input_length": 5, "output_length": 1.5}', "output_length", "1.5 is not a number"),
            ('{"timestamp": 7000, "input_length": 5, "output_length": 5, "hash_ids": 3}', "hash_ids", "not a list"),
            ('{"timestamp": 5, "input_length": 5, "output_length": 5}', "timestamp", "is earlier"),
        ],
    )
    def test_an_unreadable_row_is_named(self, tmp_path: Path, line: str, key: str | None, says: str) -> None:
        expect_mistake(write(tmp_path, *self.lines(line), name="t.jsonl"), 5, key, says)


class TestOurParquet:
    def table(self, **columns: list[object]) -> pa.Table:
        return pa.table({"t_ns": [10, 20, 30], "prompt_tokens": [5, 6, 7], "output_tokens": [1, 2, 3]} | columns)

    def test_with_and_without_the_texts(self, tmp_path: Path) -> None:
        path = tmp_path / "s.parquet"
        pq.write_table(self.table(), path)
        assert [(r.line, r.t_ns, r.prompt_tokens) for r in read_rows(path)] == [(1, 0, 5), (2, 10, 6), (3, 20, 7)]
        pq.write_table(self.table(prefix=["p:2", None, ""], session=["", "s", "s"], tenant=["a", "b", "c"]), path)
        rows = cut(path)
        assert (rows.prefix, rows.session, rows.tenant) == (["p:2", "", ""], ["", "s", "s"], ["a", "b", "c"])

    def test_an_unreadable_row_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "s.parquet"
        pq.write_table(self.table(output_tokens=[1, None, 3]), path)
        expect_mistake(path, 2, "output_tokens", "row 2 has None")

    def test_another_table_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "s.parquet"
        pq.write_table(pa.table({"t_ns": [1], "words": [2]}), path)
        with pytest.raises(BadInput, match="without prompt_tokens, output_tokens"):
            cut(path)


# --- scale -----------------------------------------------------------------------------------------------------------


def many_rows(tmp_path: Path, rows: int = 4000) -> Path:
    """One each 100 ms, and after half of them a silence of 1000 s."""
    stamps = [i // 10 + (1000 if i >= rows // 2 else 0) for i in range(rows)]
    body = [f"{second}.{i % 10}00000,GPT-4,{i + 1},5,9,API log" for i, second in enumerate(stamps)]
    return write(tmp_path, BURST_6, *body)


def test_thinning_keeps_each_row_with_its_probability(tmp_path: Path) -> None:
    path = many_rows(tmp_path)
    kept = list(cut(path, scale=0.25).prompt_tokens)
    assert len(kept) == pytest.approx(1000, abs=6 * np.sqrt(4000 * 0.25 * 0.75))
    assert kept == sorted(set(kept))
    assert kept == list(cut(path, scale=0.25).prompt_tokens) != list(cut(path, seed=2, scale=0.25).prompt_tokens)


def test_multiplying_keeps_busy_and_quiet_times(tmp_path: Path) -> None:
    whole, rows = cut(many_rows(tmp_path)), cut(many_rows(tmp_path), scale=2.5)
    t = np.array(rows.t_ns) / NS_PER_S
    assert len(rows) == pytest.approx(10_000, abs=6 * np.sqrt(4000 * 0.25))
    assert (np.diff(t) >= 0).all()
    # Of 2.5 rows a gap, the copies of the last row before the silence alone may lie in it.
    assert ((t > 201) & (t < 1199)).sum() <= 2
    assert rows.seconds == whole.seconds


def test_a_copy_has_a_session_of_its_own(tmp_path: Path) -> None:
    lines = [f"{i},s,1,GPT-4,5,5,9,API log" for i in range(3)]
    rows = cut(write(tmp_path, BURST_8, *lines), scale=3.0)
    assert sorted(rows.session) == sorted(["s", "s.1", "s.2"] * 3)


# --- size ------------------------------------------------------------------------------------------------------------


def azure(i: int) -> str:
    return f"2023-11-{16 + i // 86400} {i // 3600 % 24:02}:{i // 60 % 60:02}:{i % 60:02}.0,{i % 900 + 1},{i % 90 + 1}"


def mooncake(i: int) -> str:
    return f'{{"timestamp": {i * 1000}, "input_length": 900, "output_length": 9, "hash_ids": [0, {i}]}}'


@pytest.mark.parametrize("head, line", [(AZURE, azure), ("", mooncake)], ids=["azure", "mooncake"])
def test_of_a_large_file_only_the_cut_is_held(tmp_path: Path, head: str, line: Callable[[int], str]) -> None:
    path = tmp_path / "large"
    with path.open("w") as file:
        if head:
            file.write(head + "\n")
        file.writelines(line(i) + "\n" for i in range(30_000))
    how = TraceCut(path, start_s=29_000, duration_s=900)
    read_cut(TraceCut(path, duration_s=1), Chance(1, "trace"))  # what is loaded once is not the rows' memory
    tracemalloc.start()
    try:
        rows = read_cut(how, Chance(1, "trace"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(rows) == 900
    assert peak < path.stat().st_size / 4
