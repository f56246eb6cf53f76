"""A load profile alone, with everything in it: same seed, same bytes, on any Python."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest

from harness.errors import BadInput
from harness.plan import Plan, TraceCut, plan_profile
from harness.plan.describe import describe
from harness.spec.loadprofile import load_profile

GOLDEN = Path(__file__).parent / "golden" / "profile-seed-7.json"
PROFILE = """\
title: Everything at once
duration_s: 600
longest_stream_s: 60
arrivals:
  kind: sequence
  parts:
    - duration_s: 200
      arrivals:
        kind: sum
        parts:
          - {kind: step, levels: [{start_s: 0, rate_per_s: 2}, {start_s: 50, rate_per_s: 6}]}
          - {kind: flash_crowd, rate_per_s: 0, peak_per_s: 20, start_s: 60, rise_s: 10, hold_s: 5, half_life_s: 20}
          - {kind: renewal, rate_per_s: 2, gaps: [[0, 0.1], [0.9, 1], [1, 60]]}
    - duration_s: 200
      arrivals: {kind: trace, file: trace.csv, duration_s: 60, speed: 5, scale: 1.5, loop: true}
    - {arrivals: {kind: diurnal, low_per_s: 1, high_per_s: 12, period_s: 200, peak_s: 70}}
tokens:
  prompt: {kind: log_normal, median_tokens: 300, sigma: 1, max_tokens: 4096}
  output: {kind: trace, file: trace.csv, max_tokens: 450}
mix:
  prefixes:
    - {groups: 3, zipf: 1.2, tokens: {kind: normal, mean_tokens: 300, sd_tokens: 100}}
    - {groups: 40, share: 0.5, tokens: {kind: histogram, bins: [[64, 512, 3], [513, 2048, 1]]}}
  sessions: {share: 0.5, turns_mean: 3, think_s: {kind: log_normal, median_s: 20, sigma: 1, max_s: 200}}
  tenants: [{name: gold, share: 1, priority: -1}, {name: free, share: 4}]
  stream_share: 0.9
  hang_ups:
    - {share: 0.05, after_tokens: {kind: quantiles, points: [[0, 1], [1, 40]]}}
    - {share: 0.05, after_s: {kind: exponential, mean_s: 2, max_s: 8}}
"""
TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:{i // 60:02}:{i % 60:02}.{i:07},{100 + i},{400 + i}\n" for i in range(120)
)


def make(tmp_path: Path, profile: str = PROFILE, seed: int = 7, time_scale: float = 10) -> Plan:
    (tmp_path / "load.yaml").write_text(profile)
    (tmp_path / "trace.csv").write_text(TRACE)
    return plan_profile(load_profile(tmp_path / "load.yaml"), seed, time_scale)


def test_golden_bytes(tmp_path: Path) -> None:
    """A change here changes what a seed means: say so in the changelog, and write the file anew (UPDATE_GOLDEN=1)."""
    text = make(tmp_path).to_json()
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_the_curve_stands_in_the_plan_in_few_stretches(tmp_path: Path) -> None:
    for time_scale, every_s in ((10, 1), (0.5, 10), (0.05, 60)):
        plan = make(tmp_path, time_scale=time_scale)
        curve = json.loads(plan.to_json())["schedule"]["arrivals"]
        assert curve["every_s"] == every_s
        assert len(curve["counts"]) * every_s >= plan.clock_s
        assert sum(curve["counts"]) == len(plan.schedule)


def test_a_trace_in_a_profile_is_named_with_its_rows(tmp_path: Path) -> None:
    arrivals = PROFILE.index("arrivals:")
    rows = (
        "arrivals: {kind: sum, parts: [{kind: constant, rate_per_s: 1}, {kind: trace, file: trace.csv, speed: 2}]}\n"
        "tokens:\n  prompt: {kind: fixed, tokens: 3}\n  output: {kind: fixed, tokens: 3}\n"
    )
    plan = make(tmp_path, PROFILE[:arrivals] + rows, time_scale=5)
    assert "120 requests of trace.csv, trace seconds 0 to 119" in describe(plan)
    assert json.loads(plan.to_json())["load"]["traces"][0]["rows"] == 120


def test_in_words(tmp_path: Path) -> None:
    text = describe(make(tmp_path))
    assert "600 scenario s in 60 clock s (time_scale 10)" in text
    assert "of prompt tokens repeat the beginning of an earlier one" in text
    assert "not streamed" in text and "clients hang up" in text and "tenants free" in text
    assert "faults      none" in text and "note" not in text


def test_lengths_of_the_row_that_arrives_stay_together(tmp_path: Path) -> None:
    arrivals = PROFILE.index("arrivals:")
    rows = "arrivals: {kind: trace, file: trace.csv}\ntokens:\n  prompt: {kind: trace}\n  output: {kind: trace}\n"
    schedule = make(tmp_path, PROFILE[:arrivals] + rows, time_scale=5).schedule
    assert len(schedule) == 120
    assert (schedule.output_tokens - schedule.prompt_tokens == 300).all()


def test_lengths_drawn_from_one_file_stay_together(tmp_path: Path) -> None:
    tokens, mix = PROFILE.index("tokens:"), PROFILE.index("mix:")
    both = "tokens:\n  prompt: {kind: trace, file: trace.csv}\n  output: {kind: trace, file: trace.csv}\n"
    schedule = make(tmp_path, PROFILE[:tokens] + both).schedule
    assert (schedule.output_tokens - schedule.prompt_tokens == 300).all()
    assert len(set(schedule.prompt_tokens.tolist())) > 100
    assert mix > tokens


def test_a_trace_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        make(tmp_path, PROFILE.replace("file: trace.csv, duration_s: 60", "file: gone.csv, duration_s: 60"))


@pytest.mark.parametrize("time_scale", [0.0, -1.0, 1e-300, 1e300, float("nan"), float("inf")])
def test_a_senseless_time_scale(tmp_path: Path, time_scale: float) -> None:
    with pytest.raises(BadInput, match="--time-scale is"):
        make(tmp_path, time_scale=time_scale)


ROWS = """\
arrivals: {kind: trace, file: rows.parquet}
tokens:
  prompt: {kind: trace}
  output: {kind: trace}
mix:
  prefixes: [{groups: 1, tokens: {kind: fixed, tokens: 100}}]
  tenants: [{name: gold, share: 1, priority: -1}]
"""


def rows_of_our_own(tmp_path: Path) -> Path:
    columns = {"t_ns": [0, 10**9, 2 * 10**9], "prompt_tokens": [50, 60, 70], "output_tokens": [1, 2, 3]}
    columns |= {"prefix": ["a:40", "a:40+b:5", ""], "session": ["x", "", "x"], "tenant": ["", "blue", ""]}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def test_rows_keep_what_their_file_says_and_take_the_rest_from_the_mix(tmp_path: Path) -> None:
    rows_of_our_own(tmp_path)
    schedule = make(tmp_path, PROFILE[: PROFILE.index("arrivals:")] + ROWS).schedule
    assert schedule.more is not None
    assert schedule.prompt_tokens.tolist() == [150, 160, 170]
    assert schedule.more.prefix.tolist() == ["p0.0:100+a:40", "p0.0:100+a:40", "p0.0:100"]
    assert schedule.tenant.tolist() == ["gold", "blue", "gold"]
    assert (schedule.session.tolist(), schedule.more.turn.tolist()) == (["x", "", "x"], [1, 0, 2])


def test_a_replayed_trace_takes_tenants_streams_and_hang_ups_from_the_mix(tmp_path: Path) -> None:
    make(tmp_path)
    plan = plan_profile(load_profile(tmp_path / "load.yaml"), 7, 10, TraceCut(tmp_path / "trace.csv"))
    more = plan.schedule.more
    assert more is not None and len(plan.schedule) == 120
    assert set(plan.schedule.tenant.tolist()) == {"gold", "free"}
    assert 0 < more.stream.sum() < 120 and (more.hang_up_ns > 0).any()
    assert set(more.prefix.tolist()) == {""} and not more.turn.any()


@pytest.mark.parametrize(
    "arrivals, says",
    [
        ("{kind: trace, file: trace.csv, duration_s: 0.5, speed: 1000, loop: true}", "in a loop makes more than"),
        ("{kind: trace, file: trace.csv, scale: 1000, loop: true, speed: 1000}", "in a loop makes more than"),
        ("{kind: diurnal, low_per_s: 1, high_per_s: 2, period_s: 0.001, peak_s: 0}", "too fine for"),
    ],
)
def test_what_would_not_fit_into_memory_is_refused(tmp_path: Path, arrivals: str, says: str) -> None:
    start, end = PROFILE.index("arrivals:"), PROFILE.index("tokens:")
    profile = f"{PROFILE[:start]}arrivals: {arrivals}\n{PROFILE[end:]}".replace("duration_s: 600", "duration_s: 800000")
    with pytest.raises(BadInput, match=says):
        make(tmp_path, profile)
