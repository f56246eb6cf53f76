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


@pytest.mark.parametrize("file", [pytest.param(f, id=f"{c}/{f.stem}") for c in CHECKS for f in files(c)])
def test_a_fail_of_a_check_tells_its_story_and_nothing_else_does(file: Path) -> None:
    finding = ask(file.parent.name, load(file))
    if finding.status is not Status.FAIL:
        assert finding.story == ""
        return
    parts = ("Promised: ", " What happened: ", " First cause: ")
    assert [part for part in parts if part not in finding.story] == []
    assert "\n" not in finding.story and ".." not in finding.story


def test_a_story_tells_what_the_history_bears_out() -> None:
    """Grace too short, notice too short, a server that aborts: each with its numbers and what to change."""
    killed = ask("graceful_drain", load(HERE / "graceful_drain" / "bad-killed-at-grace-end.py")).story
    assert "killed at the end of its grace" in killed
    assert "set terminationGracePeriodSeconds to" in killed
    aborted = ask("graceful_drain", load(HERE / "graceful_drain" / "bad-aborted-on-sigterm.py")).story
    assert "--shutdown-timeout" in aborted
    lost = ask("graceful_drain", load(HERE / "graceful_drain" / "bad-node-lost.py")).story
    assert "node lost" in lost
    late = ask("graceful_drain", load(HERE / "graceful_drain" / "bad-sent-to-the-first-of-a-name.py")).story
    assert "see why the gateway sends to endpoints that are closed" in late
    unexplained = ask("gang", load(HERE / "gang" / "bad-bound-one-by-one.py")).story
    assert "bound one by one" in unexplained


@pytest.mark.parametrize("check", ALL)
def test_every_check_has_a_good_a_bad_and_an_unknown_history(check: str) -> None:
    assert {file.stem.split("-", 1)[0] for file in files(check)} == set(STATUS)


def test_every_kept_history_belongs_to_a_check() -> None:
    assert {folder.name for folder in HERE.iterdir() if folder.is_dir() and folder.name != "__pycache__"} == set(ALL)
