"""A change that could not be taken back is the loudest thing on the screen, whole, and the last."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from harness.run.preparing import prepare
from harness.run.running import run_virtually, tell_end
from harness.run.view import LiveView, PlainView
from harness.verdict import Status

ROOT = Path(__file__).resolve().parents[3]
COMMAND = "kubectl patch deployment llm --type merge -p '" + "x" * 5000 + "'"
HELD = {
    "apiVersion": "v1", "kind": "ConfigMap",
    "metadata": {"name": "held", "namespace": "inference", "finalizers": ["example.com/hold"]},
}  # fmt: skip


def test_without_colour_it_stands_between_bars_and_nothing_is_cut() -> None:
    out = io.StringIO()
    PlainView(out).alarm("HEAL FAILED", [f"by hand: {COMMAND}", "\x1b[2Jhostile\nname"])
    lines = out.getvalue().splitlines()
    assert set(lines[0]) == set(lines[-1]) == {"!"} and len(lines) == 5
    assert lines[1] == "!!! HEAL FAILED" and COMMAND in lines[2]
    assert "\x1b" not in out.getvalue()


def test_on_a_terminal_it_is_white_on_red() -> None:
    out = io.StringIO()
    LiveView(Console(file=out, force_terminal=True, color_system="standard", width=200)).alarm("HEAL FAILED", ["x"])
    assert "\x1b[1;37;41m" in out.getvalue()


def test_an_object_that_a_finalizer_holds_makes_it_and_the_answer_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The planted case: everything else of the run is as it should be."""
    short = ROOT / "tests" / "whole_runs" / "short"
    raw = yaml.safe_load((short / "experiment.yaml").read_text())
    block, arguments = raw["extensions"][0], raw["method"][0]["provider"]["arguments"]
    block |= {"load": str(short / "load.yaml"), "manifests": [str(short / "workload.yaml")]}
    arguments["manifest"] = str(tmp_path / "held.yaml")
    (tmp_path / "held.yaml").write_text(yaml.safe_dump(HELD))
    path = tmp_path / "experiment.yaml"
    path.write_text(yaml.safe_dump(raw))
    prepared = prepare(path, seed=1, target="embedded", cut=None, virtual=True)
    done = run_virtually(prepared, reports=tmp_path / "reports", plain=True, args=["gpu-harness", "run"])
    capsys.readouterr()
    tell_end(done)
    said = capsys.readouterr().out.strip().splitlines()
    loud = [line for line in said if line.startswith("!!!")]
    assert loud == said[-len(loud) :] and "HEAL FAILED" in loud[1]
    assert any("waits for its finalizers example.com/hold" in line for line in loud)
    assert any("kubectl delete configmap held -n inference" in line for line in loud)
    assert f"gpu-harness sweep {done.run_dir.path}" in loud[-2]
    finding = next(f for f in done.verdict.findings if f.check == "change_undone")
    assert finding.status is Status.FAIL and done.verdict.status is not Status.PASS
