from __future__ import annotations

import shutil
from io import StringIO
from pathlib import Path

import pytest
from demo import demo
from rich.console import Console
from story import write_run

from harness.errors import BadInput, ExitCode
from harness.run.explaining import explain_finding
from harness.run.rundir import RunDir

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    """The demo with two streams cut, beside the experiment that judges it."""
    history = demo(cut=2)
    for folder in ("experiments", "loadprofiles"):
        shutil.copytree(ROOT / folder, tmp_path / "spec" / folder)
    shutil.rmtree(tmp_path / "spec" / "experiments" / "negative")
    (tmp_path / "spec" / "experiments" / "spot-interruption-during-burst.yaml").rename(
        tmp_path / "spec" / "experiments" / "story.yaml"
    )
    write_run(history, tmp_path)
    run_json = tmp_path / "history" / "run.json"
    run_json.write_text(run_json.read_text().replace('"story.yaml"', '"experiments/story.yaml"'))
    return RunDir(tmp_path)


def test_it_tells_the_story_and_prints_every_evidence_row(run_dir: RunDir) -> None:
    out = StringIO()
    code = explain_finding(run_dir, "graceful_drain", Console(file=out, width=300))
    text = out.getvalue()
    assert code is ExitCode.FAIL
    assert not run_dir.verdict.exists()
    assert "graceful_drain: fail" in text
    assert "Promised: " in text
    assert "aborted on SIGTERM" in text
    assert text.count("reset_mid_stream on llm-a") == 4, "each of two, as evidence of the cause and of the finding"
    assert "streams_lost " in text


def test_a_check_that_is_not_there_or_was_not_asked_for_is_bad_input(run_dir: RunDir) -> None:
    with pytest.raises(BadInput, match="no check 'gracefull_drain'") as wrong:
        explain_finding(run_dir, "gracefull_drain")
    assert "graceful_drain" in str(wrong.value.hint)
    with pytest.raises(BadInput, match="not judged by recovery"):
        explain_finding(run_dir, "recovery")
