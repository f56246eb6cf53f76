"""The parts of a report: what is drawn, which requests are shown, what is told; none of it lies when thinned."""

from __future__ import annotations

import json
from dataclasses import replace

import plotly.graph_objects as go
import pytest
from demo import demo
from story import Story

from harness.checks.causes import UNEXPLAINED
from harness.checks.judge import judge
from harness.history.reader import History
from harness.history.scaleup import replicas_that_came
from harness.history.tables import Outcome
from harness.report import lanes, streams
from harness.report.content import troubled
from harness.report.figures import cost, tiles
from harness.report.moments import MOMENTS, what_happened
from harness.report.plotting import packed_plotly
from harness.report.streams import stream_rows, troubles
from harness.report.timeline import timeline
from harness.report.traces import thinned
from harness.report.waterfall import waterfall
from harness.spec.checks import GracefulDrainSpec, SloSpec
from harness.verdict import Verdict


@pytest.fixture(scope="module")
def cut() -> tuple[History, Verdict]:
    history = demo(cut=3)
    return history, judge(history, [GracefulDrainSpec(), SloSpec.model_validate({"ttft_ms_p95": 3000})])


def test_thinning_keeps_each_peak_and_both_ends() -> None:
    points = [(t, float(t % 7)) for t in range(10_000)]
    points[4321], points[7777] = (4321, 99.0), (7777, -5.0)
    kept = thinned(points, 400)
    assert len(kept) <= 404
    assert {points[0], points[-1], (4321, 99.0), (7777, -5.0)} <= set(kept)
    assert kept == sorted(kept)
    assert thinned(points[:10], 400) == points[:10]


def test_states_of_pods_nodes_and_gpus_add_up_to_what_was_there(cut: tuple[History, Verdict]) -> None:
    history = cut[0]
    by_title = {lane.title: lane for lane in lanes.lanes(history, {})}
    pods = {trace["name"]: trace for trace in by_title["Pods of the workload"].traces}
    totals = [sum(levels) for levels in zip(*(trace["y"] for trace in pods.values()), strict=True)]
    assert (totals[0], max(totals), totals[-1]) == (4, 9, 7)
    assert max(pods["no node yet"]["y"]) == 3 and max(pods["ending"]["y"]) == 2
    gpus = {trace["name"]: trace for trace in by_title["GPUs"].traces}
    there = [sum(levels) for levels in zip(*(gpus[name]["y"] for name in lanes.GPU_STATES), strict=True)]
    assert (there[0], max(there)) == (8, 16)
    assert max(gpus["asked for in vain"]["y"]) == 4
    nodes = {trace["name"]: trace for trace in by_title["Nodes"].traces}
    assert max(nodes["leaving"]["y"]) == 1 and nodes["ready"]["y"][0] == 2


def test_many_answers_are_drawn_as_quantiles_and_the_lane_says_so(
    cut: tuple[History, Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "ANSWERS", 100)
    monkeypatch.setattr(lanes, "FAILED", 1)
    lane = next(lane for lane in lanes.lanes(cut[0], {}) if lane.title.startswith("TTFT"))
    assert [trace["name"] for trace in lane.traces] == ["median", "p95", "slowest", "failed"]
    assert "of 293 answers" in lane.note and "1 of 3 failed ones drawn" in lane.note
    go.Figure(timeline(cut[0], {}))


def test_a_blind_recorder_is_drawn() -> None:
    story = Story()
    story.node("a")
    story.gap(60, 100, "Pod")
    shapes = timeline(story.build(), {})["layout"]["shapes"]
    assert (60.0, 100.0) in {(shape["x0"], shape["x1"]) for shape in shapes}


def test_the_waterfall_has_each_replica_and_its_parts_are_its_marks(cut: tuple[History, Verdict]) -> None:
    came = replicas_that_came(cut[0])
    figure = waterfall(cut[0], came)
    assert figure is not None
    go.Figure(figure)
    assert len(figure["layout"]["yaxis"]["categoryarray"]) == len(came) == 6
    ends = {}
    for trace in figure["data"]:
        for name, base, length in zip(trace["y"], trace["base"], trace["x"], strict=True):
            ends[name] = max(ends.get(name, 0.0), base + length)
    assert round(ends["llm-g"], 1) == 180.9
    assert waterfall(cut[0], []) is None


def test_the_lost_come_first_and_of_them_the_unexplained(cut: tuple[History, Verdict]) -> None:
    history, verdict = cut
    found = troubles(history, verdict)
    assert [t.cause for t in found[:4]] == ["aborted on SIGTERM"] * 3 + [None]
    drain = verdict.findings[0]
    facts = (drain.evidence[2].facts | {"cause": UNEXPLAINED},)
    odd = replace(drain, evidence=(*drain.evidence[:2], replace(drain.evidence[2], facts=facts[0])))
    told = replace(verdict, findings=(odd, *verdict.findings[1:]))
    assert [t.unexplained for t in troubles(history, told)[:3]] == [True, False, False]
    assert troubled(history, told).lead.startswith("1 unexplained. 3 lost")
    assert ("requests lost", "3", "1 unexplained") in tiles(history, told, troubles(history, told))


def test_a_cut_stream_without_its_check_is_lost_all_the_same(cut: tuple[History, Verdict]) -> None:
    verdict = judge(cut[0], [])
    name, value, words = tiles(cut[0], verdict, troubles(cut[0], verdict))[1]
    assert (name, value) == ("requests lost", "3") and "not asked for" in words


def test_a_table_of_too_many_requests_is_a_sample_with_all_kinds(
    cut: tuple[History, Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    history, verdict = cut
    found = troubles(history, verdict)
    whole = stream_rows(history, found)
    assert len(whole) == len(history.requests) and {row[-1] for row in whole} == {0, 1, 2}
    monkeypatch.setattr(streams, "STREAMS", 50)
    sample = stream_rows(history, found)
    assert len(sample) <= 50 and [row[:4] for row in sample[:3]] == [row[:4] for row in whole[:3]]
    times = [row[1] for row in sample if row[-1] == 0]
    assert min(times) < 60 and max(times) > 500  # from all over the run
    monkeypatch.setattr(streams, "STREAMS", 2)
    assert len(stream_rows(history, found)) == 2


def test_what_happened_is_told_in_order_and_not_for_ever(cut: tuple[History, Verdict]) -> None:
    history, verdict = cut
    section = what_happened(history, troubles(history, verdict))
    assert section.table is not None
    rows = [[cell.text for cell in row] for row in section.table.rows]
    times = [float(row[0]) for row in rows]
    assert times == sorted(times)
    told = " ".join(row[2] for row in rows)
    for part in ("spot_interruption-1 struck on spot-1", "lost: aborted on SIGTERM", "llm-j on on-demand-4 served its"):
        assert part in told
    many = replace(history, marks=tuple(replace(history.marks[0], t_ns=10**9 * n, name="load_step") for n in range(99)))
    long = what_happened(many, [])
    assert long.table is not None and len(long.table.rows) == MOMENTS and "left out" in long.notes[0]
    assert what_happened(History(), []).table is None


def test_cost_is_told_or_said_to_be_unknown() -> None:
    history = demo()
    assert "Cost is not known" in cost(history).lead
    prices = {"spot": 5.9, "on-demand": 12.3}
    priced = cost(replace(history, run=replace(history.run, prices_per_hour=prices)))
    assert priced.table is not None and any("on-demand" in row[0].text for row in priced.table.rows)
    assert cost(History()).lead.startswith("No GPU was seen")


def test_failed_and_refused_requests_are_in_the_figures() -> None:
    story = Story()
    story.request(10, "llm-a", lasts_s=2, ttft_ms=100)
    story.request(20, None, Outcome.HTTP_5XX)
    history = story.build()
    named = {name: value for name, value, _ in tiles(history, judge(history, []), [])}
    assert named["answered whole"] == "1 of 2" and named["TTFT p95"] == "never"


def test_plotly_travels_packed_and_always_the_same() -> None:
    assert len(packed_plotly()) < 2_200_000
    assert packed_plotly() == packed_plotly.__wrapped__()
    assert json.dumps(packed_plotly())  # text
