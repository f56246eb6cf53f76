"""What an experiment must come to, from the one place where that is declared.

Shipped experiments and their twins stand in ``tests/harness/run/virtual/expected.yaml``, all other negative ones in
``tests/matrix/matrix_files.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml
from running import ROOT

sys.path.append(str(ROOT / "tests" / "matrix"))

from matrix_files import FILES

DECLARED = ROOT / "tests/harness/run/virtual/expected.yaml"


def expected(experiment: str) -> tuple[str, str | None]:
    """Status, and the check that must have said so itself. Raises ``KeyError`` where nothing is declared."""
    name = Path(experiment).stem
    for row in FILES:
        if row.name == name:
            return row.status, row.check
    shipped = yaml.safe_load(DECLARED.read_text())
    for known, says in shipped.items():
        if known == name:
            return says["verdict"], says.get("check")
        if name in says["twins"]:
            twin = says["twins"][name]
            return "fail", twin if isinstance(twin, str) else twin["check"]
    raise KeyError(f"nothing is declared for {experiment}: {DECLARED} or tests/matrix/matrix_files.py must say it")
