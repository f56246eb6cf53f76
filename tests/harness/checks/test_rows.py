from __future__ import annotations

import math
import random

import numpy as np
import pandas as pd

from harness.checks.rows import Rows, nearest_rank
from harness.checks.slo import METRICS
from harness.history.requests import typed_requests
from harness.history.tables import REQUEST_COLUMNS, Outcome

ROWS = 300
TIMES = ("sent_ns", "headers_ns", "first_token_ns", "last_token_ns", "end_ns", "gap_max_ns")


def table() -> pd.DataFrame:
    """Every cell that may be null is, now and then."""
    rng = random.Random(7)
    rows = []
    for i in range(ROWS):
        row = dict.fromkeys(REQUEST_COLUMNS) | {"request_id": i, "attempt": 1, "intended_ns": i * 10**9, "chunks": i}
        row |= {name: rng.choice([None, i * 10**9 + rng.randrange(10**10)]) for name in TIMES}
        row |= {"planned_prompt_tokens": 9, "planned_output_tokens": rng.randrange(3), "done": True, "reused": False}
        row |= {"output_tokens": rng.choice([None, 0, 1, 2, 77]), "stream": rng.choice([None, True, False])}
        row |= {"pod": rng.choice([None, "a", "b", ""]), "outcome": rng.choice(list(Outcome)).value, "phase": "steady"}
        rows.append(row)
    return typed_requests(pd.DataFrame(rows, columns=list(REQUEST_COLUMNS), dtype=object))


def test_whole_columns_say_what_each_row_says() -> None:
    rows = Rows(table())
    every = list(rows)
    assert len(every) == len(rows) == ROWS
    for metric in METRICS:
        own = [getattr(row, metric) for row in every]
        assert [None if math.isnan(value) else value for value in rows.latency(metric).tolist()] == own, metric
    for name in ("ok", "cut", "hung_up_by_plan", "streamed"):
        assert getattr(rows, name).tolist() == [getattr(row, name) for row in every], name
    assert rows.sent.tolist() == [row.sent_ns is not None for row in every]
    assert rows.texts("pod") == [row.pod for row in every]
    assert rows.missing("pod").tolist() == [row.pod is None for row in every]
    assert rows.on_a_pod.tolist() == [bool(row.pod) for row in every]


def test_rows_are_made_for_a_mask_or_for_places() -> None:
    rows = Rows(table())
    assert rows.where(rows.cut) == [row for row in rows if row.cut]
    assert [row.request_id for row in rows.where([5, 3])] == [5, 3]
    assert rows[7].request_id == 7
    assert [row.request_id for row in rows[2:4]] == [2, 3]
    assert rows.where(np.zeros(len(rows), dtype=bool)) == []


def test_places_and_values_are_by_text() -> None:
    rows = Rows(table())
    for pod, places in rows.places("pod").items():
        assert places.tolist() == [at for at, row in enumerate(rows) if row.pod == pod]
    values = rows.each("pod", {"a": 1.0, "nobody": 2.0}).tolist()
    assert [value == 1.0 for value in values] == [row.pod == "a" for row in rows]


def test_a_rank_is_the_same_of_a_list_and_of_a_column() -> None:
    values = [3.0, 1.0, math.inf, 2.0]
    for q in (0.01, 0.25, 0.5, 0.9, 1.0):
        assert nearest_rank(values, q) == nearest_rank(np.array(values), q)
    assert nearest_rank([], 0.5) is nearest_rank(np.array([]), 0.5) is None
