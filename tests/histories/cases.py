"""The kept histories: ``<check>/{good,bad,unknown}-<what>.py``, each a script whose ``case()`` tells one run.

``good`` must pass, ``bad`` must fail, ``unknown`` must be unknown, each with the evidence the case names.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.checks.judge import CHECKS, VALIDITY
from harness.history.reader import History
from harness.spec.checks import CHECK_SPECS
from harness.verdict import Finding, Status

HERE = Path(__file__).parent
STATUS = {"good": Status.PASS, "bad": Status.FAIL, "unknown": Status.UNKNOWN}


@dataclass(frozen=True)
class Case:
    history: History
    says: tuple[str, ...]
    """Parts of the sentence, in any order."""
    evidence: tuple[str, ...] = ()
    """The first evidence rows by ref, in order; empty where the case has nothing to point at."""
    spec: dict[str, Any] = field(default_factory=dict)
    """The check's parameters as an experiment writes them."""
    exercised: int | None = None
    numbers: dict[str, Any] = field(default_factory=dict)


def files(check: str) -> list[Path]:
    return sorted((HERE / check).glob("*.py"))


def load(file: Path) -> Case:
    spec = importlib.util.spec_from_file_location("case_" + file.stem.replace("-", "_"), file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    case: Case = module.case()
    return case


def ask(check: str, case: Case) -> Finding:
    if check in VALIDITY:
        return VALIDITY[check](case.history)
    return CHECKS[check](case.history, CHECK_SPECS[check].model_validate(case.spec))
