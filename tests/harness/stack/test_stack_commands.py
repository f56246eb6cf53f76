"""``gpu-harness stack`` as a new user meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.commands import run_command_line
from harness.errors import BadInput, ExitCode
from harness.stack.listing import which
from harness.targets import standing
from harness.targets.base import Connection


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_alone_it_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["stack"]) is ExitCode.PASS
    assert "Usage: gpu-harness stack" in capsys.readouterr().out


def test_names_are_built_beside_the_cheap_ones_and_each_once() -> None:
    assert {"kubernetes", "kueue", "jobset"} <= set(both := which(["jobset", "kueue"], cheap=True, everything=False))
    assert len(both) == len(set(both))
    assert "keda" not in both
    assert which(["jobset"], cheap=False, everything=False) == ["jobset"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["status"], "no cluster of ours is up in this folder"),
        (["up", "karpnter"], "did you mean 'karpenter'"),
        (["build", "kuee"], "did you mean 'kueue'"),
        (["build"], "nothing to build is named"),
        (["up"], "Missing argument"),
    ],
)
def test_a_mistake_is_one_clear_answer(words: list[str], said: str) -> None:
    with pytest.raises(BadInput) as mistake:
        run_command_line(["stack", *words])
    assert said in str(mistake.value)


def test_nothing_to_take_down_is_no_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["stack", "down"]) is ExitCode.PASS
    assert capsys.readouterr().out == "no cluster of ours is up in this folder\n"


@pytest.mark.parametrize(("words", "stack"), [(["kubernetes"], []), (["kubernetes", "kueue"], ["kueue"])])
def test_the_control_plane_that_is_listed_can_be_brought_up(
    monkeypatch: pytest.MonkeyPatch, words: list[str], stack: list[str]
) -> None:
    asked: list[list[str]] = []

    def bring_up(_: None, **how: Any) -> Connection:
        asked.append(how["stack"])
        raise BadInput("far enough")

    monkeypatch.setattr(standing, "bring_up", bring_up)
    with pytest.raises(BadInput, match="far enough"):
        run_command_line(["stack", "up", *words])
    assert asked == [stack]
