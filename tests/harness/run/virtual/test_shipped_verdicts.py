"""Every shipped experiment comes to its declared verdict in virtual time, and its twins are found by the check named.

A few on each run of the tests; with SHIPPED=all every one of them (about 2 s of CPU each).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from virtual_runs import ROOT, Ran, run_virtually

from harness.checks.failure_class import FailureClass

FOLDER = ROOT / "experiments"
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("expected.yaml").read_text())
EACH_TIME = (
    "node-not-ready-during-burst", "consolidation-during-burst", "quota-reached-during-burst",
    "webhook-down-during-burst",
)  # fmt: skip
PLAYED = tuple(EXPECTED) if os.environ.get("SHIPPED") == "all" else EACH_TIME


def expect_failed(ran: Ran, check: str) -> None:
    assert ran.verdict.status.value == "fail", ran.verdict.sentence
    assert ran.status(check) == "fail", ran.finding(check).sentence


def test_every_experiment_has_its_expectation_and_every_twin_is_there() -> None:
    assert set(EXPECTED) == {file.stem for file in FOLDER.glob("*.yaml")}
    twins = {twin for expected in EXPECTED.values() for twin in expected["twins"]}
    assert twins <= {file.stem for file in (FOLDER / "negative").glob("*.yaml")}


def test_each_failure_class_has_an_experiment_that_yields_it() -> None:
    """Oscillation of sizes and of nodes are one class; a class that nothing shows would be a word only."""
    assert {e["class"] for e in EXPECTED.values() if "class" in e} == {failure.value for failure in FailureClass}


@pytest.mark.parametrize("name", PLAYED)
def test_an_experiment_comes_to_its_verdict(name: str, tmp_path: Path) -> None:
    ran, expected = run_virtually(FOLDER / f"{name}.yaml", tmp_path), EXPECTED[name]
    assert ran.status("faults_observed") == "pass" and ran.status("change_undone") == "pass"
    if expected["verdict"] == "pass":
        assert ran.verdict.status.value == "pass", ran.verdict.sentence
    else:
        expect_failed(ran, expected["check"])
        finding = ran.finding(expected["check"])
        assert expected["words"] in finding.sentence
        for other in expected.get("also", ()):
            expect_failed(ran, other)
        told = (finding.numbers.get("failure_class"), finding.numbers.get("sub_cause"))
        assert told == (expected.get("class"), expected.get("cause")) or "class" not in expected, finding.numbers


@pytest.mark.parametrize(("twin", "check"), [pair for name in PLAYED for pair in EXPECTED[name]["twins"].items()])
def test_a_planted_bug_is_found(twin: str, check: str, tmp_path: Path) -> None:
    expect_failed(run_virtually(FOLDER / "negative" / f"{twin}.yaml", tmp_path), check)
