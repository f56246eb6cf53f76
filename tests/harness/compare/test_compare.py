from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from demo import demo
from story import write_run
from typer.testing import CliRunner

from harness.checks.judge import judge
from harness.checks.rows import rows_of
from harness.checks.serialise import verdict_to_json
from harness.commands import app
from harness.compare.baseline import Baseline, against
from harness.compare.measures import MEASURES, Run, measured, read_run
from harness.compare.printing import sentences, to_json
from harness.compare.sides import RUNS_MIN, Side, changes, gather, holm, rank_p, ranks_of
from harness.errors import BadInput, ExitCode
from harness.history.run_info import RunInfo
from harness.spec.checks import GracefulDrainSpec, ScaleUpSpec
from harness.verdict import Finding, Role, Status, merge

VALID = Finding("run_complete", Role.VALIDITY, Status.PASS, "ok", 1)
INVALID = replace(VALID, status=Status.FAIL)
NUMBER = count()


def run(ttft: float, *, valid: bool = True, experiment: str = "e.yaml", **more: float) -> Run:
    verdict = merge([VALID if valid else INVALID])
    info = RunInfo(experiment=experiment, commit="abc")
    return Run(Path(f"reports/e/{next(NUMBER)}"), info, verdict, {"ttft_ms_p95": ttft, "not_ok_ratio": 0.0} | more)


def side(label: str, *ttfts: float) -> Side:
    return Side(label, tuple(run(ttft) for ttft in ttfts))


def test_ranks_share_what_is_equal_and_know_infinity() -> None:
    assert ranks_of([3, 1, 3, math.inf, 2]).tolist() == [3.5, 1, 3.5, 5, 2]


def test_the_test_is_exact_and_six_measures_can_reach_it() -> None:
    assert rank_p([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(2 / 252)
    assert rank_p([1, 3, 5, 7, 9], [2, 4, 6, 8, 10]) > 0.5
    assert rank_p([1] * 5, [1] * 5) == 1.0
    judged = [name for name, measure in MEASURES.items() if measure.judged]
    assert len(judged) * 2 / 252 < 0.05
    assert all(measure.judged is (name in judged) for name, measure in MEASURES.items())


def test_holm_is_monotone_and_never_above_one() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}


def test_five_a_side_claim_what_four_do_not() -> None:
    before, after = side("old", 100, 101, 102, 103, 104), side("new", 200, 201, 202, 203, math.inf)
    change = next(c for c in changes(before, after) if c.measure == "ttft_ms_p95")
    assert change.beyond_noise and change.worse
    assert sentences(before, after) == [
        "new against old: ttft_ms_p95 got worse: median 102 to 202, +98% (p 0.016, corrected)"
    ]
    assert not next(c for c in changes(after, before) if c.measure == "ttft_ms_p95").worse
    few = Side("new", after.runs[:4])
    assert all(c.p is None for c in changes(before, few))
    assert sentences(before, few)[0].endswith("4 valid runs on a side; with fewer than 5 nothing is claimed")
    assert sentences(before, side("same", 101, 100, 103, 102, 104))[0].endswith("changed beyond noise")


def test_a_comparison_for_programs_is_stable_and_has_no_infinity() -> None:
    sides = [side("old", 1, 2, 3, 4, 5), side("new", 6, 7, 8, 9, math.inf)]
    document = json.loads(to_json(sides))
    assert document["exit_code"] == ExitCode.FAIL and document["schema"] == "gpu-harness/compare/1"
    change = document["comparisons"][0]["changes"][0]
    assert (change["infinite"], change["after"][-1], change["worse"]) == (1, None, True)
    assert to_json(sides) == to_json(sides)


# One run against a baseline.


def test_a_run_far_beyond_all_of_the_baseline_is_a_regression() -> None:
    before = [run(value) for value in (100, 102, 104, 106, 115)]
    assert against({"ttft_ms_p95": 129.9}, before).status is Status.PASS  # within their range beyond the worst
    bad = against({"ttft_ms_p95": 130.1}, before)
    assert bad.status is Status.FAIL and len(bad.evidence) == RUNS_MIN
    assert "a regression: worse than all 5 baseline runs" in bad.sentence and "ttft_ms_p95 is 130" in bad.sentence
    assert "baseline 100 to 115" in bad.story
    assert against({"ttft_ms_p95": 5.0}, before).status is Status.PASS


def test_equal_baseline_runs_leave_room_for_a_tenth() -> None:
    before = [run(100)] * 5
    assert against({"ttft_ms_p95": 109}, before).status is Status.PASS
    assert against({"ttft_ms_p95": 111}, before).status is Status.FAIL
    assert against({"ttft_ms_p95": math.inf}, before).status is Status.FAIL


def test_too_small_a_baseline_or_nothing_in_common_is_unknown() -> None:
    assert against({"ttft_ms_p95": 1}, [run(1)] * 4).status is Status.UNKNOWN
    assert against({"streams_lost": 1}, [run(1)] * 5).status is Status.UNKNOWN


# Real folders.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six whole runs and one in which streams were cut, of one experiment; one more was not valid."""
    top = tmp_path_factory.mktemp("reports")
    whole, cut = demo(), demo(cut=3)
    ended = replace(whole, run=replace(whole.run, ended="aborted"))
    for name, history in [*((f"old/{n}", whole) for n in range(6)), ("new/0", cut), ("old/aborted", ended)]:
        path = write_run(history, top / name)
        specs = [ScaleUpSpec(ready_s_max=300.0), GracefulDrainSpec()]
        (path / "verdict.json").write_text(verdict_to_json(judge(history, specs)))
    return top


def test_a_run_is_read_from_its_folder_and_measured_as_its_history_says(folder: Path) -> None:
    read = read_run(folder / "new" / "0")
    history = demo(cut=3)
    assert read.values == measured(rows_of(history), read.verdict)
    assert read.values["streams_lost"] == 3 and read.values["not_ok_ratio"] == pytest.approx(3 / 296)
    assert read.values["added_ready_s_worst"] == pytest.approx(180.9, abs=0.1)
    assert read.values["ttft_ms_p95"] == pytest.approx(1208, abs=1)


def test_folders_are_sides_and_runs_that_are_not_valid_are_left_out(folder: Path) -> None:
    old, new = gather([folder / "old", folder / "new"], None)
    assert (old.label, len(old.runs), len(old.left_out)) == ("old", 6, 1)
    assert (new.label, len(new.runs)) == ("new", 1)
    assert [s.label for s in gather([folder], "experiment")] == ["story.yaml"]
    alone = gather([folder / "old" / "0", folder / "old" / "1"], None)
    assert [s.label for s in alone] == ["old/0", "old/1"]
    with pytest.raises(BadInput, match="not grouped by 'exp'"):
        gather([folder], "exp")
    with pytest.raises(BadInput, match="no judged run"):
        gather([folder / "old" / "0" / "history"], None)


def test_a_run_that_is_named_twice_counts_once(folder: Path) -> None:
    """Else a shell's glob, or one folder within another, makes five runs of one."""
    new = folder / "new"
    old, once = gather([folder / "old", new, new / ".", new / ".." / "new"], None)
    assert (len(old.runs), len(once.runs)) == (6, 1)
    assert len(Baseline.read([new, new / "0", folder / "new" / "0" / "."]).runs) == 1


def test_the_command_prints_both_and_claims_nothing_of_one_run(folder: Path) -> None:
    result = CliRunner().invoke(app, ["compare", str(folder / "old"), str(folder / "new")], standalone_mode=False)
    assert result.return_value is ExitCode.UNKNOWN
    assert "1 not valid, left out" in result.output and "nothing is claimed" in result.output
    result = CliRunner().invoke(app, ["compare", "--json", str(folder / "old")], standalone_mode=False)
    assert len(json.loads(result.output)["sides"]) == 7


def test_a_baseline_becomes_a_finding_and_a_run_is_not_its_own_baseline(folder: Path) -> None:
    baseline = Baseline.read([folder / "old"])
    cut = demo(cut=3)
    verdict = judge(cut, [GracefulDrainSpec()])
    finding = baseline.finding(cut, verdict)
    assert finding.status is Status.FAIL and "streams_lost is 3 (baseline 0 to 0)" in finding.sentence
    own = replace(demo(), dir=folder / "old" / "0")
    assert baseline.finding(own, judge(own, [])).numbers["baseline_runs"] == 5
    with pytest.raises(BadInput, match=r"runs of story\.yaml, this is a run of other\.yaml"):
        baseline.finding(replace(cut, run=replace(cut.run, experiment="other.yaml")), verdict)
