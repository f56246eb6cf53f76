"""What the experiments on real components say of their runs: judged by their verdicts, and played again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from declared import Expected, declared
from plays import Ended, folder_in, judged
from stack_real import AGAIN, play_all, table

from harness.errors import ExitCode

(ONE, TWO) = (e for e in declared() if e.name in ("kueue-admits-one-after-another", "kueue-gone-for-long"))


def finding(check: str, judged: str, sentence: str, role: str = "check") -> dict[str, str]:
    return {"check": check, "judged": judged, "sentence": sentence, "role": role}


def verdict(folder: Path, status: str, *findings: dict[str, str]) -> Path:
    said = {"status": status, "sentence": "in short", "findings": findings}
    (folder / "verdict.json").write_text(json.dumps(said))
    return folder


def test_a_verdict_as_declared_is_right(tmp_path: Path) -> None:
    ended = judged(ONE, verdict(tmp_path, "pass", finding("quota", "pass", "2 workloads, 2 admitted")), 0, "")
    assert (ended.right, ended.why_again, ended.status) == (True, "", "pass")


@pytest.mark.parametrize("status, sentence", [("fail", "2 workloads, 2 admitted"), ("pass", "nothing was asked")])
def test_another_verdict_or_other_words_are_not_and_are_not_played_again(
    tmp_path: Path, status: str, sentence: str
) -> None:
    ended = judged(ONE, verdict(tmp_path, status, finding("quota", status, sentence)), 1, "")
    assert (ended.right, ended.why_again) == (False, "")
    assert "was declared" in ended.text


def test_another_outcome_is_right_only_where_it_is_declared_with_a_reason(tmp_path: Path) -> None:
    (hangs,) = (e for e in declared() if e.also is not None)
    assert hangs.also is not None
    ran = verdict(tmp_path, "pass", finding(hangs.check, "pass", hangs.also.words))
    ended = judged(hangs, ran, 0, "")
    assert (ended.right, ended.status) == (True, "pass")
    assert hangs.also.why in ended.text
    assert not judged(replace(hangs, also=None), ran, 0, "").right
    ran = verdict(tmp_path, "pass", finding(hangs.check, "pass", "no hole"))
    assert not judged(hangs, ran, 0, "").right


def test_what_nothing_can_be_said_of_is_played_again_and_says_why(tmp_path: Path) -> None:
    stalled = finding("machine_did_not_stall", "unknown", "54 % waited", "validity")
    quota = finding("quota", "unknown", "2 workloads, 2 admitted")
    ended = judged(ONE, verdict(tmp_path, "unknown", quota, stalled), 2, "")
    assert (ended.right, ended.why_again) == (False, "54 % waited")


def test_a_run_without_a_verdict_is_played_again_but_for_bad_input(tmp_path: Path) -> None:
    assert judged(ONE, None, ExitCode.HARNESS_ERROR, "etcd did not come up").why_again == "no verdict, exit 70"
    assert not judged(ONE, tmp_path, ExitCode.BAD_INPUT, "no such key").why_again


def test_a_run_is_judged_by_the_folder_that_it_names_itself() -> None:
    said = "A title, folder of things\nseed 1, time_scale 15, folder /r/kueue/2026-11-30T20-00-00Z\n  it began\n"
    assert folder_in(said) == Path("/r/kueue/2026-11-30T20-00-00Z")
    assert folder_in("etcd did not come up") is None


def test_a_check_that_was_not_asked_is_said(tmp_path: Path) -> None:
    assert "quota was not asked" in judged(ONE, verdict(tmp_path, "pass"), 0, "").text


def test_what_is_unknown_is_played_again_alone_after_all_others_twice_at_most(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds: list[tuple[list[str], int]] = []

    def each(chosen: Sequence[Expected], lanes: int) -> Iterator[tuple[Expected, Ended | None, float]]:
        rounds.append(([e.name for e in chosen], lanes))
        for expected in chosen:
            crowded = expected is TWO
            yield expected, Ended(not crowded, "as seen", "crowded" if crowded else "", "unknown"), 1.0

    rows = play_all((ONE, TWO), each, 2, tmp_path / "verdicts.json")
    assert rounds == [([ONE.name, TWO.name], 2), *[([TWO.name], 1)] * AGAIN]
    assert [(r.right, len(r.again)) for r in rows] == [(True, 0), (False, AGAIN)]
    assert f"{TWO.name} (kueue): NOT AS DECLARED, as seen (1 s; played 3 times" in capsys.readouterr().out
    told = json.loads((tmp_path / "verdicts.json").read_text())
    assert [(t["name"], t["right"], t["again"]) for t in told] == [
        (ONE.name, True, []), (TWO.name, False, ["crowded", "crowded"]),
    ]  # fmt: skip
    assert [line.split()[-1] for line in table(rows).splitlines()[1:]] == ["yes", "NO"]
