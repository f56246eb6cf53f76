"""Experiments as tests: the plugin in a pytest of its own, on the short experiment in virtual time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
SHORT = Path(__file__).resolve().parents[1] / "whole_runs" / "short"
USES = """
import pytest

@pytest.mark.gpu_harness("short/experiment.yaml", seed=2)
def test_marked(gpu_run):
    assert gpu_run.finding("run_complete").judged.value == "pass", gpu_run.verdict.sentence
    assert gpu_run.history.run.seed == 2
    assert len(gpu_run.history.requests) == gpu_run.history.run.planned
    assert gpu_run.report.is_file()

def test_called(gpu_harness):
    again = gpu_harness("short/experiment.yaml", seed=2)
    assert gpu_harness("short/experiment.yaml", seed=2) is again  # once per session

def test_no_marker(gpu_run):
    pass

def test_no_such_finding(gpu_harness):
    gpu_harness("short/experiment.yaml", seed=2).finding("speed")
"""


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    shutil.copytree(SHORT, pytester.path / "short")
    return pytester.path


def test_a_test_gets_verdict_and_history_of_a_run(pytester: pytest.Pytester, folder: Path) -> None:
    (folder / "test_uses.py").write_text(USES)
    result = pytester.runpytest_subprocess("-q", "--strict-markers")
    result.assert_outcomes(passed=2, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*gpu_run needs @pytest.mark.gpu_harness(experiment)*", "*not judged by 'speed'*"])
    assert len(list((folder / "reports" / "experiment").iterdir())) == 1


def test_each_experiment_file_becomes_tests_a_finding_each(pytester: pytest.Pytester, folder: Path) -> None:
    result = pytester.runpytest_subprocess("--gpu-harness", "--collect-only", "-q", "short")
    names = [line.rpartition("::")[2] for line in result.outlines if "::" in line]
    assert "run_complete" in names and "load_offered" in names and len(names) == len(set(names)) > 8
    assert all("experiment.yaml" in line for line in result.outlines if "::" in line)
    off = pytester.runpytest_subprocess("--collect-only", "-q", "short")
    off.stdout.fnmatch_lines(["*no tests collected*"])


def test_a_finding_that_does_not_pass_fails_its_test_and_says_why(pytester: pytest.Pytester, folder: Path) -> None:
    file = folder / "short" / "experiment.yaml"
    text = file.read_text()
    start = text.index("    checks:")
    end = text.index("controls:") if "controls:" in text[start:] else len(text)
    checks = "    checks:\n      - slo: {ttft_ms_p50: 0.001, phase: all}\n"
    file.write_text(text[:start] + checks + text[end:])
    result = pytester.runpytest_subprocess("--gpu-harness", "short", "--gpu-harness-reports", "kept")
    result.assert_outcomes(passed=9, failed=2)  # without a hypothesis, whether it was steady before is not known
    why = "*ttft_ms_p50 measured*(it counts as unknown because a fail of it needs steady_before to hold)"
    result.stdout.fnmatch_lines(["slo: unknown", why, "Promised:*", "report: *kept*report.html"])
    result.stdout.fnmatch_lines(["steady_before: unknown"])
    assert "Traceback" not in result.stdout.str()


def test_a_wrong_experiment_is_one_clear_error(pytester: pytest.Pytester, folder: Path) -> None:
    file = folder / "short" / "experiment.yaml"
    file.write_text(file.read_text().replace("time_scale:", "time_scail:"))
    result = pytester.runpytest_subprocess("--gpu-harness", "short")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*time_scail*"])
    assert "Traceback" not in result.stdout.str()
