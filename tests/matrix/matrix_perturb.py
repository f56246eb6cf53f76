"""The histories of the matrix as a worse recorder would have seen them, and what the checks say of each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from random import Random

from matrix_row import ROOT

from harness.checks.judge import CHECKS
from harness.history.reader import History
from harness.spec.checks import CheckSpec
from harness.verdict import Finding, Status

sys.path.append(str(ROOT / "tests" / "histories"))

from perturbing import PERTURBATIONS


def flips(history: History, specs: tuple[CheckSpec, ...], seed: str) -> Iterator[tuple[str, str, str]]:
    """Perturbation, check and what it says now, for each answer that turned into its opposite."""
    said = [CHECKS[spec.name](history, spec) for spec in specs]
    for name, perturb in PERTURBATIONS.items():
        worse = perturb(history, Random(f"{seed}/{name}"))
        for spec, before in zip(specs, said, strict=True):
            after = CHECKS[spec.name](worse, spec)
            if opposite(before, after):
                yield name, spec.name, f"{before.status} became {after.status}: {after.sentence}"


def opposite(before: Finding, after: Finding) -> bool:
    return {before.status, after.status} == {Status.PASS, Status.FAIL}


def ways() -> int:
    """As how many worse recorders would have seen it a history is judged again."""
    return len(PERTURBATIONS)
