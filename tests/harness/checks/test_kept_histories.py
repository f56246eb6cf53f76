from __future__ import annotations

from pathlib import Path

import pytest
from cases import HERE, STATUS, Case, ask, files, load

from harness.checks.judge import CHECKS, VALIDITY
from harness.verdict import Role, Status

ALL = [*CHECKS, *VALIDITY]


def kept() -> list[object]:
    return [pytest.param(check, file, id=f"{check}/{file.stem}") for check in ALL for file in files(check)]


@pytest.mark.parametrize(("check", "file"), kept())
def test_a_kept_history_is_judged_as_its_name_says(check: str, file: Path) -> None:
    case: Case = load(file)
    finding = ask(check, case)
    assert finding.status is STATUS[file.stem.split("-", 1)[0]], finding.sentence
    assert finding.check == check
    assert finding.role is (Role.VALIDITY if check in VALIDITY else Role.CHECK)
    assert [part for part in case.says if part not in finding.sentence] == [], finding.sentence
    assert tuple(row.ref for row in finding.evidence)[: len(case.evidence)] == case.evidence
    assert {key: finding.numbers.get(key) for key in case.numbers} == pytest.approx(case.numbers)
    if case.exercised is not None:
        assert finding.exercised == case.exercised
    if finding.status is Status.PASS:
        assert finding.exercised > 0


@pytest.mark.parametrize("check", ALL)
def test_every_check_has_a_good_a_bad_and_an_unknown_history(check: str) -> None:
    assert {file.stem.split("-", 1)[0] for file in files(check)} == set(STATUS)


def test_every_kept_history_belongs_to_a_check() -> None:
    assert {folder.name for folder in HERE.iterdir() if folder.is_dir() and folder.name != "__pycache__"} == set(ALL)
