"""The sample run under ``reports/`` tells the truth about what is there now: it is judged to the same bytes again."""

from __future__ import annotations

from pathlib import Path

from harness.checks.serialise import verdict_to_json
from harness.history.reader import History
from harness.run.judging import judge_run
from harness.run.rundir import RunDir

SAMPLE = Path(__file__).parents[3] / "reports" / "sample"


def test_the_sample_run_is_judged_to_the_same_bytes_again() -> None:
    """A change of the verdict's text asks for a new sample; a change of a verdict, for a line in the CHANGELOG too."""
    assert verdict_to_json(judge_run(RunDir(SAMPLE), History.load(SAMPLE))) == (SAMPLE / "verdict.json").read_text()


def test_the_sample_holds_no_place_of_the_machine_that_made_it() -> None:
    for file in SAMPLE.rglob("*"):
        if file.is_file() and file.suffix in (".json", ".jsonl", ".md", ".xml", ".yaml"):
            assert "/tmp/" not in file.read_text() and "/home/" not in file.read_text(), file
