"""A recorder that sees less, or sees it twice, may make an answer unknown; it never turns a pass into a fail."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from cases import Case, ask, files, load
from perturbing import PERTURBATIONS

from harness.checks.judge import CHECKS
from harness.verdict import Status

AGAIN = 2
"""Each of them, with places of its own."""


@pytest.mark.parametrize("file", [pytest.param(f, id=f"{c}/{f.stem}") for c in CHECKS for f in files(c)])
def test_less_to_see_never_flips_an_answer(file: Path) -> None:
    check, case = file.parent.name, load(file)
    answer = ask(check, case).status
    if answer is Status.UNKNOWN:
        return
    flipped = []
    for name, perturb in PERTURBATIONS.items():
        for turn in range(AGAIN if case.history.objects else 0):
            worse = perturb(case.history, random.Random(f"{check}/{file.stem}/{name}/{turn}"))
            finding = ask(check, Case(worse, (), spec=case.spec))
            if finding.status not in (answer, Status.UNKNOWN):
                flipped.append((name, finding.sentence))
    assert flipped == []
