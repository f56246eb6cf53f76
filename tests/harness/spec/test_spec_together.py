"""An experiment and its load profile must fit each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import BadInput
from harness.spec.experiment import load_experiment
from harness.spec.loadprofile import load_profile
from harness.spec.together import check_together

EXPERIMENT = """\
title: t
description: d
controls:
  - {name: gpu-harness, provider: {type: python, module: harness.run.chaos.control}}
method:
  - type: action
    name: interrupt
    provider:
      type: python
      module: harness.run.chaos.actions
      func: spot_interruption
      arguments: {after_s: 320, nodes: {selector: pool=spot}, notice_s: 120}
extensions:
  - name: gpu-harness
    time_scale: 15
    workload: {namespace: inference, selector: app=llm, model: llama-8b}
    load: load.yaml
    phases: {warm_up_s: 60}
    checks: [{slo: {ttft_ms_p95: 3000, phase: fault}}]
"""
PROFILE = """\
title: x
duration_s: 600
longest_stream_s: 60
arrivals: {kind: poisson, rate_per_s: 2}
tokens: {prompt: {kind: fixed, tokens: 1}, output: {kind: fixed, tokens: 1}}
"""
Check = Callable[[str, str, float | None], None]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    def check(experiment: str, profile: str, duration_s: float | None) -> None:
        (tmp_path / "e.yaml").write_text(experiment)
        (tmp_path / "load.yaml").write_text(profile)
        loaded = load_experiment(tmp_path / "e.yaml", environ={})
        check_together(loaded, load_profile(loaded.load_file), duration_s=duration_s)

    return check


def test_fits(check: Check) -> None:
    check(EXPERIMENT, PROFILE, None)
    check(EXPERIMENT, PROFILE.replace("600", "440"), None)


@pytest.mark.parametrize(
    "old, new, line, key, says",
    [
        ("notice_s: 120", "notice_s: 300", 12, "after_s", "ends at 620 s, but the load profile ends at 600 s"),
        ("after_s: 320", "after_s: 30", 12, "after_s", "begins at 30 s, within the warm-up of 60 s"),
        ("warm_up_s: 60", "warm_up_s: 600", 18, "warm_up_s", "leaves nothing of 600 s"),
        ("warm_up_s: 60", "warm_up_s: 0", None, None, ""),
        ("phase: fault", "phase: warm_up", None, None, ""),
    ],
)  # fmt: skip
def test_does_not_fit(check: Check, old: str, new: str, line: int | None, key: str | None, says: str) -> None:
    text = EXPERIMENT.replace(old, new)
    if line is None:
        check(text, PROFILE, None)
        return
    with pytest.raises(BadInput) as caught:
        check(text, PROFILE, None)
    assert caught.value.where is not None
    assert caught.value.where.line == line
    assert (caught.value.where.key or "").endswith(str(key))
    assert says in caught.value.message


def test_a_trace_sets_the_end(check: Check) -> None:
    check(EXPERIMENT, PROFILE, 441)
    with pytest.raises(BadInput, match="but the trace ends at 400 s"):
        check(EXPERIMENT, PROFILE, 400)


def test_a_phase_that_cannot_come(check: Check) -> None:
    start, end = EXPERIMENT.index("method:"), EXPERIMENT.index("extensions:")
    quiet = f"{EXPERIMENT[:start]}method: []\n{EXPERIMENT[end:]}"
    with pytest.raises(BadInput, match="there is no phase 'fault': no action is disruptive"):
        check(quiet, PROFILE, None)
    with pytest.raises(BadInput, match="there is no phase 'warm_up'"):
        check(
            EXPERIMENT.replace("phase: fault", "phase: warm_up").replace("warm_up_s: 60", "warm_up_s: 0"), PROFILE, None
        )


def test_the_client_must_outwait_the_longest_stream(check: Check) -> None:
    with pytest.raises(BadInput, match="the longest stream takes 60 clock seconds") as caught:
        check(EXPERIMENT, PROFILE.replace("longest_stream_s: 60", "longest_stream_s: 900"), None)
    assert caught.value.where is not None
    assert (Path(caught.value.where.file).name, caught.value.where.key) == ("load.yaml", "longest_stream_s")
