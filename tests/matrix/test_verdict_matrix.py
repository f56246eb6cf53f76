"""A slice of the verdict matrix, with one seed: the rows that also run for real, the first row of each check, and the
healthy worlds. All of it: `make verdict-matrix`."""

from __future__ import annotations

import json

import pytest
import yaml
from failing_examples import BY_HAND, SHOWN, example
from failing_examples import FILE as EXAMPLES
from matrix_causes import NAMES, first_line, missing_words
from matrix_cells import Cell, Said, run_cell, run_row
from matrix_clauses import CLAUSES, without_a_clause
from matrix_row import ALL_CHECKS, ROOT, Row
from matrix_rows import HEALTHY, ROWS
from matrix_table import Came, came_of, came_of_healthy

from fakes.config import PlantedBug
from harness.checks.judge import CHECKS, VALIDITY

SEED = 1
FIRST = {row.check: row for row in reversed(ROWS)}
DEAR = {"allocatable_lies"}
"""A node rejects pods as fast as they are made, 1,500 of them: as much CPU as eight of the others."""
SLICE = [row for row in ROWS if (row.real and row.name not in DEAR) or row is FIRST[row.check]]


@pytest.mark.parametrize("row", SLICE, ids=lambda row: row.name)
def test_what_is_wrong_is_found_by_the_check_that_promises_it(row: Row) -> None:
    cell = run_row(row, SEED, perturb=row is SLICE[0])
    assert cell.flips == (), "seen by a worse recorder an answer turned into its opposite"
    said = cell.of(row.check)
    assert came_of(row, cell) is Came.RIGHT, f"{cell.status}, failed: {cell.failed}; {row.check} said: {said}"
    if row is SHOWN.get(row.check):
        kept = json.loads(EXAMPLES.read_text())[row.check]
        assert example(row, cell) == kept, "python tests/matrix/failing_examples.py && python docs/generate.py"
    assert missing_words(row, cell) == [], f"a reader reads first: {first_line(cell)}"


@pytest.mark.parametrize("experiment", HEALTHY)
def test_a_healthy_world_passes(experiment: str) -> None:
    cell = run_cell(experiment, (), experiment, SEED, perturb=experiment == ALL_CHECKS)
    assert cell.flips == (), "seen by a worse recorder an answer turned into its opposite"
    assert came_of_healthy(cell) is Came.PASSED, f"failed: {cell.failed}, unsure: {cell.unsure}"


def test_the_example_of_each_check_is_among_what_is_run_here() -> None:
    assert set(SHOWN) == set(CHECKS) - set(BY_HAND) and all(row in SLICE for row in SHOWN.values())


def test_every_planted_bug_and_every_negative_experiment_has_a_row() -> None:
    assert {row.bugs[0] for row in ROWS if row.bugs} == set(PlantedBug)
    files = {f"experiments/negative/{file.name}" for file in (ROOT / "experiments" / "negative").glob("*.yaml")}
    twins = yaml.safe_load((ROOT / "tests/harness/run/virtual/expected.yaml").read_text()).values()
    declared = {f"experiments/negative/{name}.yaml" for expected in twins for name in expected["twins"]}
    in_rows = {row.experiment for row in ROWS}
    assert files - in_rows - declared == set()
    assert in_rows & declared == set(), "an expectation has one place"
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_every_row_says_what_its_first_sentence_must_name() -> None:
    assert set(NAMES) == {row.name for row in ROWS}
    assert all(len(words) > 1 and all(words) for words in NAMES.values())


def test_rows_name_checks_that_exist_and_say_what_they_must_say() -> None:
    for row in ROWS:
        assert row.check in (VALIDITY if row.status == "unknown" and row.check in VALIDITY else CHECKS), row.name
        assert row.words and all(row.words), row.name


def test_every_clause_of_a_check_s_promise_is_broken_by_a_row_of_that_check() -> None:
    by_name = {row.name: row for row in ROWS}
    assert set(CLAUSES) == {*CHECKS, "validity"} - set(BY_HAND)
    for check, clauses in CLAUSES.items():
        for text, names in clauses:
            assert names, (check, text)
            for name in names:
                row = by_name[name]
                found_by = row.check in VALIDITY if check == "validity" else row.breaks_promise_of(check)
                assert found_by, f"{name} is not what breaks {check}: {text}"
    assert without_a_clause(ROWS) == set()


ROW = Row("a promise", "pdb", ("the cause",), (PlantedBug.DRAIN_IGNORES_PDB,))
NO_VERDICT = Row("a premise", "load_offered", ("late",), status="unknown")


def cell(status: str, *said: tuple[str, str, str]) -> Cell:
    return Cell("row", 1, status, tuple(Said(c, c in VALIDITY, judged, judged, text) for c, judged, text in said), 0.0)


@pytest.mark.parametrize(
    ("row", "ran", "came"),
    [
        pytest.param(ROW, cell("fail", ("pdb", "fail", "for the cause")), Came.RIGHT, id="right"),
        pytest.param(ROW, cell("fail", ("pdb", "fail", "for another")), Came.OTHER, id="for-another-cause"),
        pytest.param(ROW, cell("fail", ("gang", "fail", ""), ("pdb", "pass", "")), Came.OTHER, id="another-check"),
        pytest.param(ROW, cell("pass", ("pdb", "pass", "the cause")), Came.MISSED, id="missed"),
        pytest.param(ROW, cell("unknown", ("pdb", "unknown", "the cause")), Came.UNJUDGED, id="unknown"),
        pytest.param(NO_VERDICT, cell("unknown", ("load_offered", "unknown", "late")), Came.RIGHT, id="premise"),
        pytest.param(NO_VERDICT, cell("fail", ("load_offered", "unknown", "late")), Came.FALSE_ALARM, id="accused"),
        pytest.param(NO_VERDICT, cell("pass", ("load_offered", "pass", "late")), Came.MISSED, id="premise-missed"),
        pytest.param(NO_VERDICT, cell("unknown", ("load_offered", "pass", "")), Came.OTHER, id="by-another"),
    ],
)
def test_what_came_of_a_cell(row: Row, ran: Cell, came: Came) -> None:
    assert came_of(row, ran) is came
