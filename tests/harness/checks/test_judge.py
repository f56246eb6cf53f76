from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from story import Story, write_run

from harness.checks import judge as judging
from harness.checks.judge import CHECKS, VALIDITY, judge
from harness.checks.serialise import load_verdict, verdict_from_json, verdict_to_json
from harness.errors import BadInput
from harness.history.reader import History
from harness.history.tables import Outcome
from harness.spec.checks import CHECK_SPECS, CheckSpec, GracefulDrainSpec, PdbSpec, SloSpec
from harness.verdict import Finding, Status

SLO = SloSpec.model_validate({"ttft_ms_p95": 1000})
SPECS: tuple[CheckSpec, ...] = (SLO, GracefulDrainSpec())


def drained(outcome: Outcome = Outcome.OK, ttft_ms: float = 300.0) -> Story:
    """A valid run: one pod drained with a stream in flight, enough requests for a p95."""
    story = Story()
    story.node("spot-1")
    story.pod("llm-a", "spot-1")
    story.traffic(100, 180, 1, ("llm-a",), ttft_ms=ttft_ms, lasts_s=30)
    story.request(310, "llm-a", outcome, lasts_s=22, ttft_ms=ttft_ms)
    story.evict(320, "llm-a")
    story.end(333, "llm-a")
    return story.valid()


def test_every_spec_has_its_check() -> None:
    assert set(CHECKS) == set(CHECK_SPECS)


def test_the_checks_asked_for_come_first_then_all_validity_checks() -> None:
    verdict = judge(drained().build(), SPECS)
    assert [f.check for f in verdict.findings] == ["slo", "graceful_drain", *VALIDITY]


def test_a_valid_run_passes() -> None:
    verdict = judge(drained().build(), SPECS)
    assert verdict.status is Status.PASS, verdict.sentence


def test_one_cut_stream_fails_the_run_even_when_the_load_was_not_offered() -> None:
    story = drained(Outcome.RESET_MID_STREAM)
    for at_s in range(20):
        story.request(200 + at_s, "llm-a", lag_ms=3000.0, ttft_ms=9000.0, lasts_s=95)
    verdict = judge(story.build(), SPECS)
    by_name = {f.check: f for f in verdict.findings}
    assert (by_name["slo"].status, by_name["slo"].judged) == (Status.FAIL, Status.UNKNOWN)
    assert by_name["slo"].because == "a fail of it needs load_offered to hold"
    assert (by_name["graceful_drain"].judged, verdict.status) == (Status.FAIL, Status.FAIL)


def test_late_requests_of_a_load_that_was_not_offered_are_no_verdict_on_the_system() -> None:
    story = drained()
    for at_s in range(20):
        story.request(200 + at_s, "llm-a", lag_ms=3000.0, ttft_ms=9000.0, lasts_s=95)
    verdict = judge(story.build(), SPECS)
    assert verdict.status is Status.UNKNOWN
    assert verdict.sentence.startswith("load_offered")


def test_a_stall_of_the_machine_is_told_by_its_own_check_alone() -> None:
    story = drained()
    for at_s in range(20):
        story.request(200 + at_s, "llm-a", lag_ms=2000.0 - 100 * at_s, ttft_ms=9000.0, lasts_s=95)
    story.stall(220, 2.0)
    verdict = judge(story.build(), SPECS)
    broken = [f.check for f in verdict.findings if f.check in VALIDITY and f.status is not Status.PASS]
    assert (broken, verdict.status) == (["machine_did_not_stall"], Status.UNKNOWN)


@pytest.mark.parametrize("ended", ["interrupted", "child_died", "aborted", "error"])
def test_a_run_that_ended_early_never_passes(ended: str) -> None:
    history = drained().build()
    assert judge(replace(history, run=replace(history.run, ended=ended)), SPECS).status is Status.UNKNOWN


def test_a_check_that_raises_is_unknown_with_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(history: History, spec: PdbSpec) -> Finding:
        raise KeyError("desiredHealthy")

    monkeypatch.setitem(judging.CHECKS, "pdb", broken)
    finding = judge(drained().build(), [PdbSpec()]).findings[0]
    assert (finding.status, finding.exercised) == (Status.UNKNOWN, 0)
    assert "KeyError: 'desiredHealthy' (at test_judge.py:" in finding.sentence


def test_a_diagnosis_that_raises_leaves_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(history: History, findings: object) -> None:
        raise TypeError("no such field")

    history = drained(Outcome.RESET_MID_STREAM).build()
    as_ever = judge(history, SPECS)
    monkeypatch.setattr(judging, "diagnose", broken)
    verdict = judge(history, SPECS)
    assert verdict.status is as_ever.status is Status.FAIL
    assert "names no cause: TypeError: no such field (at test_judge.py:" in verdict.findings[1].story


def test_an_empty_history_is_judged_without_raising() -> None:
    verdict = judge(History(), [SLO, GracefulDrainSpec(), PdbSpec()])
    assert verdict.status is Status.UNKNOWN
    assert [f.check for f in verdict.findings if "the check itself failed" in f.sentence] == []


def test_the_same_folder_gives_the_same_bytes_and_the_verdict_reads_back(tmp_path: Path) -> None:
    history = drained(Outcome.RESET_MID_STREAM).build()
    text = verdict_to_json(judge(history, SPECS))
    run_dir = write_run(history, tmp_path / "run")
    assert verdict_to_json(judge(History.load(run_dir), SPECS)) == text
    (run_dir / "verdict.json").write_text(text)
    assert load_verdict(run_dir / "verdict.json") == verdict_from_json(text) == judge(history, SPECS)


def test_what_is_no_verdict_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no verdict here"):
        load_verdict(tmp_path / "verdict.json")
    (tmp_path / "verdict.json").write_text('{"status": "perhaps"}')
    with pytest.raises(BadInput, match="this is no verdict"):
        load_verdict(tmp_path / "verdict.json")
