"""Writes docs/failing-examples.json: a fail of each check, from a run of the verdict matrix in virtual time, seed 1.

``python tests/matrix/failing_examples.py && python docs/generate.py`` puts them into docs/checks.md. The same
code gives the same bytes.
"""

from __future__ import annotations

import json
import sys

from matrix_cells import Cell, run_row
from matrix_row import ROOT, Row
from matrix_rows import ROWS

from harness.checks.judge import CHECKS

SEED = 1
FILE = ROOT / "docs" / "failing-examples.json"
BY_HAND = ("claims", "routing", "quota")
"""Checks that no row of the matrix fails, because of what the embedded API does not serve, or because another check
tells of the same bug there: their examples are written by hand, from the finding of the run that each names."""
SHOWN = {
    check: next(row for row in ROWS if row.check == check and row.status == "fail")
    for check in CHECKS
    if check not in BY_HAND
}
"""The row that the page shows of each check."""


def main() -> None:
    known = json.loads(FILE.read_text())
    found = {}
    for check in CHECKS:
        row = SHOWN.get(check)
        found[check] = known[check] if row is None else example(row, run_row(row, SEED))
        print(f"{check}: {row.name if row else 'as it was'}", flush=True)
    FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def example(row: Row, cell: Cell) -> dict[str, str]:
    """What the page shows of it."""
    said = cell.of(row.check, row.words)
    if said is None or said.judged != "fail":
        sys.exit(f"{row.name} with seed {SEED} did not fail in {row.check}: {cell.status} ({', '.join(cell.failed)})")
    sentence, _, story = said.text.partition(" Promised: ")
    return {
        "row": row.name,
        "breaks": row.breaks,
        "experiment": row.experiment,
        "sentence": sentence,
        "story": f"Promised: {story}",
    }


if __name__ == "__main__":
    main()
