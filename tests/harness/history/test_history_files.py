from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from demo import demo
from story import write_run

from harness.errors import BadInput
from harness.history.jsonl import append_fault, append_mark
from harness.history.reader import History
from harness.history.run_info import RunInfo
from harness.history.seal import SEAL_FILE, seal
from harness.history.tables import RECORDED_KINDS, FaultEvent, FaultStage, LedgerEntry, ObjectEventType, Phase
from harness.history.writer import HistoryWriter

PHASES = (Phase("warm_up", 0, 50), Phase("steady", 50, 100))
INFO = RunInfo(seed=7, time_scale=15, experiment="e.yaml", ended="completed", phases=PHASES, planned=2, load_end_ns=100)
INFO = replace(INFO, versions={"python": "3"}, undo_left=("x",), workload={"namespace": "inference"}, duplicate_ends=1)


def pod(name: str, version: int) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "inference", "uid": f"u-{name}", "resourceVersion": str(version)}}


def schedule() -> pd.DataFrame:
    columns = {
        "t_ns": [0, 60],
        "prompt_tokens": [1, 2],
        "output_tokens": [3, 4],
        "tenant": ["", ""],
        "session": ["", ""],
    }
    return pd.DataFrame(columns)


def record(run_dir: Path) -> HistoryWriter:
    """A small run as the supervisor writes it, up to the moment before ``close``."""
    writer = HistoryWriter(run_dir / "history")
    writer.objects.write(1, "Pod", ObjectEventType.LISTED, pod("a", 1))
    writer.objects.write(2, "Pod", ObjectEventType.ADDED, pod("b", 2))
    writer.objects.write(5, "Node", ObjectEventType.GAP, since_ns=3, reason="410 Gone")
    writer.samples.add(4, "custom.metrics", "vllm_num_requests_waiting", 3, {"pod": "a", "app": "llm"})
    append_mark(run_dir / "history", 9, "phase", "steady")
    append_fault(run_dir / "history", FaultEvent(0, 10, "spot-1", "spot", FaultStage.INJECTED, ("n1",), "emulated"))
    (run_dir / "load").mkdir(exist_ok=True)
    lines = [
        {"e": "ready", "t_ns": 1},
        {"e": "end", "id": 0, "outcome": "ok", "sent_ns": 1},
        {"e": "end", "id": 0, "outcome": "ok", "sent_ns": 1},
        {"e": "health", "t_ns": 8, "cpu_ratio": 0.5, "loop_gap_ms_max": 1.5, "in_flight": 3},
    ]
    (run_dir / "load" / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    schedule().to_parquet(run_dir / "schedule.parquet")
    return writer


def test_round_trip(tmp_path: Path) -> None:
    with record(tmp_path) as writer:
        records = writer.write_load(schedule(), tmp_path / "load" / "records.jsonl", PHASES)
        INFO.write(writer.dir)
    history = History.load(tmp_path)
    assert records.duplicate_ends == 1
    assert history.run == INFO and history.phases == PHASES and history.phase("steady") == PHASES[1]
    assert [(e.index, e.t_ns, e.kind, e.type.value, e.name, e.uid) for e in history.objects] == [
        (0, 1, "Pod", "LISTED", "a", "u-a"),
        (1, 2, "Pod", "ADDED", "b", "u-b"),
        (2, 5, "Node", "GAP", "", ""),
    ]
    assert [(g.kind, g.since_ns, g.t_ns, g.reason) for g in history.gaps] == [("Node", 3, 5, "410 Gone")]
    assert history.requests["outcome"].tolist() == ["ok", "not_sent"]
    assert [tuple(row) for row in history.samples.itertuples(index=False)] == [
        (4, "custom.metrics", "vllm_num_requests_waiting", '{"app":"llm","pod":"a"}', 3.0),
        (8, "load", "cpu_ratio", "{}", 0.5),
        (8, "load", "loop_gap_ms_max", "{}", 1.5),
        (8, "load", "in_flight", "{}", 3.0),
    ]
    assert [(m.name, m.value) for m in history.marks] == [("phase", "steady"), ("duplicate_ends", "1")]
    assert history.faults == (FaultEvent(0, 10, "spot-1", "spot", FaultStage.INJECTED, ("n1",), "emulated"),)
    assert not (tmp_path / "history" / "samples.jsonl").exists()


def test_a_killed_harness_leaves_what_it_flushed_and_gaps(tmp_path: Path) -> None:
    writer = record(tmp_path)
    writer.mark(1000, "load_start")
    writer.flush()
    history = History.load(tmp_path)  # the writer is never closed: what is on disk is what a kill -9 leaves
    assert [e.name for e in history.objects if e.type is not ObjectEventType.GAP] == ["a", "b"]
    reasons = {g.kind: g.reason or "" for g in history.gaps}
    assert set(RECORDED_KINDS) <= set(reasons)
    assert "cut after 3 events" in reasons["Pod"] and "run.json is missing" in reasons["run.json"]
    assert "requests.parquet" in reasons and "samples.parquet" in reasons
    assert history.requests["outcome"].tolist() == ["ok", "not_sent"]  # rebuilt from the load's records
    assert history.requests["intended_ns"].tolist() == [1000, 1060]
    assert len(history.samples) == 1
    assert history.run.ended == "error"
    writer.close()


def test_an_objects_file_cut_anywhere_is_a_gap(tmp_path: Path) -> None:
    with record(tmp_path) as writer:
        writer.write_load(schedule(), tmp_path / "load" / "records.jsonl", PHASES)
        INFO.write(writer.dir)
    path = tmp_path / "history" / "objects.jsonl.zst"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        history = History.load(tmp_path)
        assert {"Pod", "Node"} <= {g.kind for g in history.gaps}, f"cut at {length}"
        assert [e.index for e in history.objects] == list(range(len(history.objects)))


def test_events_that_vanished_from_a_whole_file_are_a_gap(tmp_path: Path) -> None:
    """Whoever rewrote the file closed it properly, so only the count can tell."""
    with HistoryWriter(tmp_path / "history") as writer:
        for i in range(3):
            writer.objects.write(i, "Pod", ObjectEventType.MODIFIED, pod("p", i))
        replace(INFO, object_events=writer.objects.written + 1).write(writer.dir)
    gaps = History.load(tmp_path).gaps
    assert {"Pod", "Node"} <= {gap.kind for gap in gaps}
    assert gaps[0].reason is not None and "holds 3 events, but 4 were written" in gaps[0].reason
    assert gaps[0].since_ns == 0


def test_a_damaged_objects_file_is_a_gap_from_there(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path / "history") as writer:
        for i in range(2000):
            writer.objects.write(i, "Pod", ObjectEventType.MODIFIED, pod(f"p{i * 7919 % 2000}", i))
            if i % 100 == 0:
                writer.flush()
        INFO.write(writer.dir)
    path = tmp_path / "history" / "objects.jsonl.zst"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 64] = b"\xff" * 64
    path.write_bytes(raw)
    history = History.load(tmp_path)
    pods = [e for e in history.objects if e.type is ObjectEventType.MODIFIED]
    gap = next(g for g in history.gaps if g.kind == "Pod")
    assert 0 < len(pods) < 2000
    assert gap.since_ns == pods[-1].t_ns and "is cut after" in (gap.reason or "")


def test_one_flipped_bit_of_the_objects_is_seen(tmp_path: Path) -> None:
    with record(tmp_path) as writer:
        writer.write_load(schedule(), tmp_path / "load" / "records.jsonl", PHASES)
        INFO.write(writer.dir)
    whole = History.load(tmp_path)
    path = tmp_path / "history" / "objects.jsonl.zst"
    good = path.read_bytes()
    for at in range(len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :])
        seen = History.load(tmp_path)
        assert seen.objects == whole.objects or len(seen.gaps) > len(whole.gaps), f"bit flipped at byte {at}"


def test_another_outcome_written_over_the_first_is_seen(tmp_path: Path) -> None:
    with record(tmp_path) as writer:
        writer.write_load(schedule(), tmp_path / "load" / "records.jsonl", PHASES)
        INFO.write(writer.dir)
    path = tmp_path / "history" / "requests.parquet"
    good = path.read_bytes()
    at = good.index(b"not_sent")
    path.write_bytes(good[:at] + b"notXsent" + good[at + 8 :])
    history = History.load(tmp_path)
    assert any(g.kind == "requests.parquet" for g in history.gaps)
    assert history.requests["outcome"].tolist() == ["ok", "not_sent"]  # from the load's own records


def test_one_flipped_bit_of_a_sealed_file_is_seen(tmp_path: Path) -> None:
    with record(tmp_path) as writer:
        writer.write_load(schedule(), tmp_path / "load" / "records.jsonl", PHASES)
        writer.close()
        replace(INFO, sealed=True).write(writer.dir)
        seal(writer.dir)
    assert [gap.kind for gap in History.load(tmp_path).gaps] == ["Node"]  # the recorder's own
    names = {path.name for path in writer.dir.iterdir()} - {SEAL_FILE}
    assert {"requests.parquet", "samples.parquet", "faults.jsonl", "marks.jsonl", "run.json"} < names
    for name in sorted(names):
        path = writer.dir / name
        good = path.read_bytes()
        for at in range(0, len(good), max(1, len(good) // 20)):
            path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
            assert any(name in (g.reason or "") for g in History.load(tmp_path).gaps), f"{name}: bit at byte {at}"
        path.write_bytes(good)


def test_what_a_changed_file_says_is_not_believed_where_the_first_records_are_at_hand(tmp_path: Path) -> None:
    with record(tmp_path) as writer:
        writer.write_load(schedule(), tmp_path / "load" / "records.jsonl", PHASES)
        writer.close()
        replace(INFO, sealed=True).write(writer.dir)
        seal(writer.dir)
    table = History.load(tmp_path).requests
    table.assign(outcome="ok").to_parquet(writer.dir / "requests.parquet")
    assert History.load(tmp_path).requests["outcome"].tolist() == ["ok", "not_sent"]


def test_a_seal_that_is_gone_or_no_seal_is_a_gap(tmp_path: Path) -> None:
    with record(tmp_path) as writer:
        writer.close()
        replace(INFO, sealed=True).write(writer.dir)
        seal(writer.dir)
    (writer.dir / SEAL_FILE).write_bytes(b"\xff\n")
    assert any("cannot be read" in (g.reason or "") for g in History.load(tmp_path).gaps)
    (writer.dir / SEAL_FILE).write_text("nothing\n")
    assert any("line 1 is no checksum" in (g.reason or "") for g in History.load(tmp_path).gaps)
    (writer.dir / SEAL_FILE).unlink()
    assert any(f"{SEAL_FILE} is missing" in (g.reason or "") for g in History.load(tmp_path).gaps)


@pytest.mark.parametrize("name", ["marks.jsonl", "faults.jsonl"])
def test_a_cut_line_file_is_a_gap_and_keeps_the_rest(tmp_path: Path, name: str) -> None:
    with record(tmp_path) as writer:
        INFO.write(writer.dir)
    path = tmp_path / "history" / name
    path.write_bytes(path.read_bytes() + b'{"t_ns": 12, "na')
    history = History.load(tmp_path)
    assert len(history.marks) == 1 and len(history.faults) == 1
    assert any(g.kind == name and "line 2" in (g.reason or "") for g in history.gaps)


@pytest.mark.parametrize("name", ["objects.jsonl.zst", "marks.jsonl", "faults.jsonl", "samples.parquet", "run.json"])
def test_a_missing_file_is_a_gap(tmp_path: Path, name: str) -> None:
    with record(tmp_path) as writer:
        INFO.write(writer.dir)
    (tmp_path / "history" / name).unlink()
    assert any(name in (g.reason or "") for g in History.load(tmp_path).gaps)


def test_run_info_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown keys: sede"):
        RunInfo.from_json('{"sede": 1}')
    with pytest.raises(ValueError, match="a run ends as one of"):
        replace(INFO, ended="fine").write(tmp_path)
    assert RunInfo.from_json(INFO.to_json()) == INFO


def test_a_folder_that_is_no_run_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no recorded run"):
        History.load(tmp_path)


def test_the_ledger_of_the_fakes_is_read_where_there_is_one(tmp_path: Path) -> None:
    with record(tmp_path) as writer:
        writer.write_load(schedule(), tmp_path / "load" / "records.jsonl", PHASES)
        INFO.write(writer.dir)
    assert History.load(tmp_path).ledger is None
    lines = [
        {"pod": "a", "e": "open", "id": "chatcmpl-7-0", "prompt_tokens": 1},
        {"pod": "b", "e": "open", "id": "chatcmpl-7-1", "prompt_tokens": 2},
        {"pod": "a", "e": "close", "id": "chatcmpl-7-0", "sent_tokens": 3, "sent_events": 3, "finish": "length"},
    ]
    (tmp_path / "history" / "ledger.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"po')
    history = History.load(tmp_path)
    assert history.ledger == (
        LedgerEntry(0, "a", "7-0", 1, True, 3, 3, "length"),
        LedgerEntry(1, "b", "7-1", 2),
    )
    assert [gap.reason for gap in history.gaps if gap.kind == "ledger.jsonl"] == [
        "ledger.jsonl: line 4 is cut or damaged"
    ]


@pytest.mark.parametrize("name", ["faults.jsonl", "marks.jsonl", "ledger.jsonl"])
def test_a_file_of_lines_that_cannot_be_opened_is_a_gap(tmp_path: Path, name: str) -> None:
    """As a Parquet file that cannot be: the run is unknown, and the machine is not to blame."""
    run_dir = write_run(demo(), tmp_path / "run")
    (run_dir / "history" / name).unlink(missing_ok=True)
    (run_dir / "history" / name).mkdir()
    assert any(f"{name} cannot be read: Is a directory" in (g.reason or "") for g in History.load(run_dir).gaps)
