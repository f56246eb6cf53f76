"""The live view's numbers, as the load's records grow."""

from __future__ import annotations

import json
from pathlib import Path

from harness.clock import NS_PER_S
from harness.run.tail import WINDOW_S, FaultTail, LoadTail

NOW_NS = 10 * NS_PER_S


def test_only_whole_answers_count_as_served(tmp_path: Path) -> None:
    records = [
        {"e": "sent", "id": 1, "t_ns": NOW_NS - NS_PER_S},
        {"e": "sent", "id": 2, "t_ns": NOW_NS - NS_PER_S},
        {"e": "end", "id": 1, "outcome": "ok", "end_ns": NOW_NS, "intended_ns": 0, "first_token_ns": 30_000_000},
        {"e": "end", "id": 2, "outcome": "connect_refused", "end_ns": NOW_NS, "intended_ns": 0},
    ]
    file = tmp_path / "records.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records) + '{"e":"sent","id":3,')
    tail = LoadTail(file)
    tail.update()
    assert (tail.sent, tail.ended, tail.not_ok) == (2, 2, 1)
    assert tail.sent_per_s(NOW_NS) == 2 / WINDOW_S
    assert tail.served_per_s(NOW_NS) == 1 / WINDOW_S
    assert tail.ttft_ms(NOW_NS) == 30


def test_faults_are_read_once_and_a_line_that_is_none_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "faults.jsonl"
    tail = FaultTail(file)
    assert tail.news() == []
    lines = [
        json.dumps({"t_ns": t, "fault_id": "a-1", "fault": "a", "stage": s}) for t, s in ((1, "planned"), (2, "x"))
    ]
    file.write_text("\n".join([*lines, '{"t_ns":3,"fault_id":"a-1","fault":"a","stage":"injected"}', '{"t_ns":4,']))
    assert [(f.t_ns, f.stage.value) for f in tail.news()] == [(1, "planned"), (3, "injected")]
    assert tail.news() == []
    assert len(tail.seen) == 2
