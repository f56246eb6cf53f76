"""Traces: what is read, what is refused, and how a cut is replayed."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.clock import NS_PER_S
from harness.errors import BadInput
from harness.plan.chance import Chance
from harness.plan.make import schedule_of_trace
from harness.plan.plan import plan_profile
from harness.plan.trace import TraceCut, TraceRows, parse_stamp_ns, read_cut, read_rows
from harness.spec.loadprofile import load_profile

ROOT = Path(__file__).resolve().parents[3]

HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens"
ROWS = [
    "2023-11-16 18:15:46.6805900,374,44",
    "2023-11-16 18:15:50.9951690,396,109",
    "2023-11-16 18:15:51.2224670,879,55",
    "2023-11-16 18:15:51.2224670,91,16",
    "2023-11-16 18:15:56.6805900,91,17",
]


def trace(tmp_path: Path, *rows: str, head: str = HEAD, end: str = "\r\n") -> Path:
    path = tmp_path / "trace.csv"
    path.write_bytes(end.join([head, *rows]).encode())
    return path


def test_azure_2023(tmp_path: Path) -> None:
    rows = list(read_rows(trace(tmp_path, *ROWS)))
    assert [row.t_ns for row in rows] == [0, 4_314_579_000, 4_541_877_000, 4_541_877_000, 10 * NS_PER_S]
    assert [(row.line, row.prompt_tokens, row.output_tokens) for row in rows[:2]] == [(2, 374, 44), (3, 396, 109)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_azure_2024_with_offsets_other_order_and_more_columns(tmp_path: Path, end: str) -> None:
    path = trace(
        tmp_path, "1,5,2024-05-10 00:00:00.009930+00:00,6", "",
        "1,7,2024-05-10T02:00:00.1+02:00,8", "1,9,2024-05-10 00:00:01Z,9",
        head="\ufeffExtra, GeneratedTokens,TIMESTAMP,ContextTokens", end=end,
    )  # fmt: skip
    rows = list(read_rows(path))
    assert [(row.t_ns, row.prompt_tokens, row.output_tokens) for row in rows] == [
        (0, 6, 5), (90_070_000, 8, 7), (990_070_000, 9, 9),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["2023-11-16 18:15:46.6805900", "2024-02-29 23:59:59", "1999-12-31T00:00:00.5"])
def test_stamps_agree_with_datetime(text: str) -> None:
    ns = parse_stamp_ns(text)
    parsed = datetime.fromisoformat(text[:26]).replace(tzinfo=UTC)
    epoch = parse_stamp_ns("1970-01-01 00:00:00")
    assert ns is not None
    assert epoch is not None
    assert (ns - epoch) / NS_PER_S == pytest.approx(parsed.timestamp(), abs=1e-6)


@pytest.mark.parametrize(
    "row, key, says",
    [
        ("2023-11-16 18:15:57.0,x,1", "ContextTokens", '"x" is not a number of tokens'),
        ("2023-11-16 18:15:57.0,5,0", "GeneratedTokens", '"0" is not a number of tokens'),
        ("2023-11-16 18:15:57.0,-5,1", "ContextTokens", '"-5"'),
        ("2023-11-16 18:15:57.0,1.5,1", "ContextTokens", '"1.5"'),
        ("2023-11-31 18:15:57.0,5,1", "TIMESTAMP", "is not a time"),
        ("16/11/2023 18:15,5,1", "TIMESTAMP", "is not a time"),
        ("2023-11-16 18:1", None, "has 1 fields"),
        ("2023-11-16 18:15:40.0,5,1", "TIMESTAMP", "is earlier than the row before it"),
        ('"2023-11-16', None, "cannot be read as CSV"),
    ],
)
def test_an_unreadable_row_is_named(tmp_path: Path, row: str, key: str | None, says: str) -> None:
    path = trace(tmp_path, *ROWS, row)
    with pytest.raises(BadInput) as caught:
        list(read_rows(path))
    where = caught.value.where
    assert where is not None
    assert (where.file, where.line, where.key) == (str(path), 7, key)
    assert says in caught.value.message


def cut(path: Path, *args: float, **more: float) -> TraceRows:
    return read_cut(TraceCut(path, *args, **more), Chance(1, "trace"))


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "is empty"),
        (b'{"title": "chat"}\n', "is no row of a trace"),
        (b"{title\n", "is not JSON"),
        (b"TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n", "with images"),
        (b"TIMESTAMP,ContextTokens\n2023,1\n", "an Azure trace without GeneratedTokens"),
        (b"Timestamp,Model,Request tokens\n", "a BurstGPT trace without Response tokens"),
        (b"title: chat\nduration_s: 1\n", 'begins with "title: chat"'),
        (gzip.compress(b"x", mtime=0), "gzip data"),
        (b"PAR1\0\0", "cannot be read as Parquet"),
        (b"\x7fELF\0", "binary data"),
        (b"\xff\xfe\xe9", "cannot be read as CSV"),
        (HEAD.encode() + b"\r\n", "a header, but no rows"),
    ],
)
def test_another_kind_of_file_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        cut(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)
    assert "input_length" in (caught.value.hint or "")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        cut(tmp_path / "gone.csv")


class TestCut:
    def test_from_start_for_duration(self, tmp_path: Path) -> None:
        rows = cut(trace(tmp_path, *ROWS), 4.0, 6.0)
        assert list(rows.prompt_tokens) == [396, 879, 91]
        assert rows.t_ns[0] == 314_579_000
        assert rows.seconds == 6.0

    def test_to_the_end(self, tmp_path: Path) -> None:
        rows = cut(trace(tmp_path, *ROWS), 4.4)
        assert list(rows.output_tokens) == [55, 16, 17]
        assert rows.seconds == pytest.approx(5.6)

    def test_rows_past_the_cut_are_not_looked_at(self, tmp_path: Path) -> None:
        assert len(cut(trace(tmp_path, *ROWS, "broken"), 0.0, 10.0)) == 4

    def test_past_the_end(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="goes past the end") as caught:
            cut(trace(tmp_path, *ROWS), 4.0, 60.0)
        assert "seconds 0 to 10.0" in (caught.value.hint or "")

    def test_empty(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="no row lies in the cut"):
            cut(trace(tmp_path, *ROWS), 1.0, 2.0)

    @pytest.mark.parametrize("speed", [1e-300, 1e-9, 1e-4])
    def test_a_replay_that_would_take_ages(self, tmp_path: Path, speed: float) -> None:
        profile = load_profile(ROOT / "loadprofiles" / "chat-bursts.yaml")
        with pytest.raises(BadInput, match="on the clock"):
            schedule_of_trace(profile, TraceCut(trace(tmp_path, *ROWS), speed=speed), 1.0, 1)

    def test_a_multiple_that_no_memory_holds_is_refused_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="the trace's cut"):
            read_cut(TraceCut(trace(tmp_path, *ROWS), scale=1e9), Chance(1, "t"))

    def test_of_one_row_there_is_no_rate(self, tmp_path: Path) -> None:
        profile = load_profile(ROOT / "loadprofiles" / "chat-bursts.yaml")
        plan = plan_profile(profile, 1, 1.0, TraceCut(trace(tmp_path, ROWS[0])))
        assert (plan.stats["rows"], plan.stats["mean_per_s"]) == (1, 0.0)

    @pytest.mark.parametrize(
        "flags",
        [
            {"start_s": -1.0}, {"duration_s": 0.0}, {"speed": 0.0}, {"speed": float("nan")}, {"start_s": float("inf")},
            {"scale": 0.0}, {"start_s": 1e300}, {"duration_s": 1e10}, {"speed": 1e300}, {"scale": 1e10},
        ],
    )  # fmt: skip
    def test_senseless_flags(self, tmp_path: Path, flags: dict[str, float]) -> None:
        with pytest.raises(BadInput, match=r"--(trace-start|trace-duration|speed|scale) is"):
            TraceCut(tmp_path / "x.csv", **flags)
