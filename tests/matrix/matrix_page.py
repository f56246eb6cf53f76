"""docs/verdict-matrix.md: what a run of some rows found replaces their lines, and the others stay."""

from __future__ import annotations

import re
from collections.abc import Sequence

from matrix_clauses import clause_table
from matrix_row import ROOT
from matrix_table import CAUSES_HEAD, HEALTHY_HEAD, PERTURBED_HEAD, REAL_HEAD, ROW_HEAD

PAGE = ROOT / "docs" / "verdict-matrix.md"
HEADS = {
    "rows": ROW_HEAD, "healthy": HEALTHY_HEAD, "causes": CAUSES_HEAD, "perturbed": PERTURBED_HEAD, "real": REAL_HEAD,
}  # fmt: skip
"""Sections by name, each a table whose lines begin with a name in ticks."""
_NAME = re.compile(r"^\| `([^`]+)` \|")


def known_lines(page: str) -> dict[str, dict[str, str]]:
    """The lines of each section, by their names."""
    found: dict[str, dict[str, str]] = {}
    for section, text in re.findall(r"<!-- (\w+) -->\n(.*?)<!-- end -->", page, flags=re.DOTALL):
        lines = ((_NAME.match(line), line) for line in text.splitlines())
        found[section] = {match[1]: line for match, line in lines if match}
    return found


def updated(page: str, new: dict[str, dict[str, str]], order: dict[str, Sequence[str]]) -> str:
    """``new``: lines by section and name; ``order``: all names that a section may have. What is not in it goes."""
    known = known_lines(page)
    sections: dict[str, str] = {}
    for section, head in HEADS.items():
        lines = {**known.get(section, {}), **new.get(section, {})}
        own = [lines[name] for name in order[section] if name in lines]
        sections[section] = f"<!-- {section} -->\n" + "\n".join([head, *own]) + "\n<!-- end -->"
    return _page(sections)


def _page(sections: dict[str, str]) -> str:
    return f"""# The verdict matrix

<!-- written by `make verdict-matrix`; what it runs stands in tests/matrix/matrix_rows.py -->

Does the harness find what is wrong, by the check that promises it, and nothing where nothing is? Each row plants one
bug into the fakes (`fakes/config.py`, `planted_bugs:` of an experiment's world), or breaks a premise of the run, and
runs it in virtual time over several seeds; the healthy worlds run over more. A cell is *right* when the check that
promises what was broken failed, and named the cause. *Also failed* are other checks that saw the consequences.

{sections["rows"]}

{sections["healthy"]}

Again, with the same history in every cell: `make verdict-matrix`; one row, with the folders of its runs:
`python tests/matrix/verdict_matrix.py --rows NAME --keep DIR`; with `--write` its line here is written anew.

## Named at once

Does the first sentence name what was planted: the component and its wrong act? What it must name stands in
`tests/matrix/matrix_causes.py`, decided from what each row plants. One run of each row, seed 3:
`python tests/matrix/verdict_matrix.py --causes --write`.

{sections["causes"]}

## For real

Some rows run with sockets, Locust, Chaos Toolkit and the wall clock too, each to the same expectation:
`python tests/matrix/verdict_matrix.py --real --write`.

{sections["real"]}

## Seen worse

The same histories, seen by a worse recorder: Events dropped, changes doubled and kinds out of order as the API may
deliver them, gaps, clocks that are seconds off, the file cut. Such a history may make an answer unknown. It must never
turn a pass of any check into a fail, or a fail into a pass: `python tests/matrix/verdict_matrix.py --perturb --write`.

{sections["perturbed"]}

## Clause by clause

Each check's promise in its parts, and what breaks each of them. Rows of experiments that must end unknown prove that a
check, or the run, says so where nothing was put to the test.

{clause_table()}
"""
