"""A real kube-apiserver and the embedded one answer the same, save for what is explained beside the case."""

from __future__ import annotations

import pytest
from case import Case, Explained, case, get
from compare import Outcome, judge
from wire_cases import areas


@pytest.mark.parametrize("area", sorted(areas()))
def test_both_servers_agree(area: str, outcomes: dict[str, list[Outcome]]) -> None:
    failed = [str(outcome) for outcome in outcomes[area] if outcome.failed]
    assert not failed, "\n" + "\n".join(failed)


def test_there_are_enough_cases_and_half_are_errors_or_races() -> None:
    cases = [c for found in areas().values() for c in found]
    assert len(cases) >= 250
    assert sum(c.error for c in cases) >= len(cases) // 2
    names = [(area, c.name) for area, found in areas().items() for c in found]
    assert len(names) == len(set(names)), "two cases of one name"


def explained(*where: str) -> Case:
    return case("c", get("/x"), explained=tuple(Explained(w, "why") for w in where))


def test_a_difference_that_nobody_explained_fails() -> None:
    outcome = judge(explained(), [{"status": 200, "body": {"a": 1}}], [{"status": 200, "body": {"a": 2}}])
    assert outcome.unexplained == (("[0].body.a", 1, 2),)
    assert outcome.failed


def test_an_explained_difference_passes_and_fails_once_it_is_gone() -> None:
    ours, theirs = [{"body": {"a": 1}}], [{"body": {"a": 2}}]
    assert not judge(explained("[0].body.*"), ours, theirs).failed
    gone = judge(explained("[0].body.*"), ours, ours)
    assert gone.stale == ("[0].body.*",)
    assert gone.failed


def test_types_count_and_so_does_what_is_absent() -> None:
    assert judge(explained(), [{"a": 1}], [{"a": True}]).failed
    assert judge(explained(), [{"a": None}], [{}]).failed


def test_an_explanation_covers_no_more_than_it_says() -> None:
    outcome = judge(explained("[0].a"), [{"a": 1, "b": 1}], [{"a": 2, "b": 2}])
    assert [where for where, _, _ in outcome.unexplained] == ["[0].b"]
