"""The merge rule of ``harness/verdict.py`` as a truth table: a check's answer against the validity it stands on."""

from __future__ import annotations

import itertools

import pytest

from harness.checks.judge import VALIDITY
from harness.checks.metrics_path import NEEDS as METRICS_PATH_NEEDS
from harness.checks.scale_up import NEEDS as SCALE_UP_NEEDS
from harness.checks.slo import NEEDS as SLO_NEEDS
from harness.errors import ExitCode
from harness.verdict import Finding, Role, Status, Verdict, merge

PASS, FAIL, UNKNOWN = Status.PASS, Status.FAIL, Status.UNKNOWN


def check(status: Status, needs: tuple[str, ...] = (), name: str = "slo", exercised: int = 1) -> Finding:
    return Finding(name, Role.CHECK, status, f"{name} says {status}", exercised, needs=needs)


def validity(status: Status, name: str = "load_offered", exercised: int = 1) -> Finding:
    return Finding(name, Role.VALIDITY, status, f"{name} says {status}", exercised)


def judged(verdict: Verdict) -> list[Status | None]:
    return [finding.judged for finding in verdict.findings]


@pytest.mark.parametrize(
    ("own", "needed", "other", "expected"),
    [
        (PASS, PASS, PASS, PASS),
        (PASS, PASS, FAIL, UNKNOWN),
        (PASS, PASS, UNKNOWN, UNKNOWN),
        (PASS, FAIL, PASS, UNKNOWN),
        (PASS, UNKNOWN, PASS, UNKNOWN),
        (FAIL, PASS, PASS, FAIL),
        (FAIL, PASS, FAIL, FAIL),  # a validity check that the fail does not stand on
        (FAIL, PASS, UNKNOWN, FAIL),
        (FAIL, FAIL, PASS, UNKNOWN),
        (FAIL, UNKNOWN, PASS, UNKNOWN),
        (FAIL, FAIL, FAIL, UNKNOWN),
        (UNKNOWN, PASS, PASS, UNKNOWN),
        (UNKNOWN, FAIL, FAIL, UNKNOWN),
    ],
)
def test_one_check_that_needs_one_of_two_validity_checks(
    own: Status, needed: Status, other: Status, expected: Status
) -> None:
    findings = [check(own, needs=("load_offered",)), validity(needed), validity(other, "recorder_complete")]
    verdict = merge(findings)
    assert judged(verdict)[0] is expected
    assert verdict.status is expected


@pytest.mark.parametrize("broken", [FAIL, UNKNOWN])
@pytest.mark.parametrize("name", VALIDITY)
def test_what_each_validity_check_takes_from_each_check(name: str, broken: Status) -> None:
    """A pass stands on all of them. A fail on those alone that it says it needs: what compares the times of two
    clocks on ``clocks_agree``, and none on ``versions_known``, for a promise was broken whatever the version."""
    others = [validity(PASS, other) for other in VALIDITY if other != name]
    needs = {"scale_up": SCALE_UP_NEEDS, "metrics_path": METRICS_PATH_NEEDS, "slo": SLO_NEEDS, "graceful_drain": ()}
    for own, needed in needs.items():
        assert judged(merge([check(PASS, needed, own), validity(broken, name), *others]))[0] is UNKNOWN
        verdict = merge([check(FAIL, needed, own), validity(broken, name), *others])
        assert judged(verdict)[0] is (UNKNOWN if name in needed else FAIL), own
    assert [own for own, needed in needs.items() if "clocks_agree" in needed] == ["scale_up", "metrics_path"]
    assert not any("versions_known" in needed for needed in needs.values())


@pytest.mark.parametrize("statuses", list(itertools.product([PASS, FAIL, UNKNOWN], repeat=2)))
def test_fail_outweighs_unknown_outweighs_pass(statuses: tuple[Status, Status]) -> None:
    verdict = merge([check(statuses[0]), check(statuses[1], name="pdb"), validity(PASS)])
    assert verdict.status is (FAIL if FAIL in statuses else UNKNOWN if UNKNOWN in statuses else PASS)


@pytest.mark.parametrize("broken", [FAIL, UNKNOWN])
def test_a_broken_validity_check_alone_never_fails_a_run_and_never_passes_it(broken: Status) -> None:
    verdict = merge([check(PASS), validity(broken)])
    assert verdict.status is UNKNOWN
    assert judged(verdict) == [UNKNOWN, UNKNOWN]
    assert verdict.findings[0].because == "the run was not valid: load_offered"
    assert verdict.sentence.startswith("load_offered could not be judged: load_offered says")


def test_a_fail_that_loses_its_ground_says_which() -> None:
    finding = merge([check(FAIL, needs=("load_offered",)), validity(FAIL)]).findings[0]
    assert (finding.status, finding.judged) == (FAIL, UNKNOWN)
    assert finding.because == "a fail of it needs load_offered to hold"


@pytest.mark.parametrize("exercised", [0, -1])
def test_a_pass_without_exercise_is_unknown(exercised: int) -> None:
    verdict = merge([check(PASS, exercised=exercised), validity(PASS)])
    assert (verdict.status, judged(verdict)[0]) == (UNKNOWN, UNKNOWN)
    assert verdict.findings[0].because == "its promise was never put to the test"


def test_a_run_without_a_check_is_unknown() -> None:
    assert merge([validity(PASS)]).status is UNKNOWN
    assert merge([]).status is UNKNOWN


def test_all_pass() -> None:
    verdict = merge([check(PASS), check(PASS, name="pdb"), validity(PASS)])
    assert verdict.status is PASS
    assert verdict.sentence == "all 2 checks passed, and the run was valid"
    assert [finding.because for finding in verdict.findings] == [None, None, None]


def test_the_order_of_findings_and_their_own_answers_are_kept() -> None:
    findings = [check(FAIL, name="b"), validity(UNKNOWN), check(PASS, name="a")]
    verdict = merge(findings)
    assert [f.check for f in verdict.findings] == ["b", "load_offered", "a"]
    assert [f.status for f in verdict.findings] == [FAIL, UNKNOWN, PASS]


@pytest.mark.parametrize(
    ("status", "code"), [(PASS, ExitCode.PASS), (FAIL, ExitCode.FAIL), (UNKNOWN, ExitCode.UNKNOWN)]
)
def test_exit_codes(status: Status, code: ExitCode) -> None:
    assert merge([check(status), validity(PASS)]).exit_code is code
