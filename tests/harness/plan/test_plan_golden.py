"""The plan: same seed, same bytes, on any machine; what does not fit is refused before anything is touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.errors import BadInput
from harness.faults.pick import FleetNode
from harness.faults.scene import Scene
from harness.plan import Plan, TraceCut, plan_experiment
from harness.plan.describe import describe
from harness.spec.experiment import load_experiment
from harness.spec.loadprofile import load_profile

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
FLEET = [FleetNode(f"{pool}-{i}", {"pool": pool}, 4) for pool in ("spot", "on-demand") for i in (1, 2, 3)]

EXPERIMENT = """\
title: Two nodes go
description: One after the other.
controls:
  - {name: gpu-harness, provider: {type: python, module: harness.run.chaos.control}}
method:
  - type: action
    name: load stands still
    provider: {type: python, module: harness.run.chaos.actions, func: pause_load, arguments: {after_s: 70, hold_s: 30}}
  - type: action
    name: objects arrive
    provider:
      type: python
      module: harness.run.chaos.actions
      func: apply_objects
      arguments: {after_s: 100, manifest: gang.yaml}
  - type: action
    name: two go
    background: true
    provider: &spot
      type: python
      module: harness.run.chaos.actions
      func: spot_interruption
      arguments: {after_s: 200, nodes: {selector: pool=spot, count: 2}, notice_s: 120}
  - type: action
    name: one more
    provider: {<<: *spot, arguments: {after_s: 210, nodes: {selector: pool=spot}, notice_s: 30}}
extensions:
  - name: gpu-harness
    time_scale: 15
    workload: {namespace: inference, selector: app=llm, model: llama-8b}
    load: load.yaml
    checks: [{graceful_drain: {}}]
"""
PROFILE = """\
title: Everything at once
duration_s: 600
longest_stream_s: 60
arrivals:
  kind: sum
  parts:
    - {kind: bursts, rate_per_s: 2, windows: [{start_s: 80, end_s: 140, added_per_s: 24}]}
    - {kind: gamma, rate_per_s: 2, gap_cv: 4}
    - {kind: gamma, rate_per_s: 2, gap_cv: 0.5}
    - {kind: on_off, on_per_s: 10, off_per_s: 0, on_mean_s: 60, off_mean_s: 200}
    - {kind: ramp, from_per_s: 0, to_per_s: 4}
    - {kind: constant, rate_per_s: 1}
tokens:
  prompt: {kind: quantiles, points: [[0, 2], [0.3, 400], [0.9, 2735], [1, 14050]], max_tokens: 4096}
  output: {kind: quantiles, points: [[0, 7], [0.65, 217], [0.7, 384], [1, 1000]], max_tokens: 450}
trace: {output_tokens_max: 450}
"""
GANG = """\
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang-b, namespace: inference}
---
apiVersion: v1
kind: Namespace
metadata: {name: other}
"""
TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n" + "\r\n".join(
    f"2023-11-16 18:{i // 60:02}:{i % 60:02}.{i:07},{100 + i},{400 + i}" for i in range(120)
)


def write_files(folder: Path) -> None:
    for name, text in (("e.yaml", EXPERIMENT), ("load.yaml", PROFILE), ("gang.yaml", GANG), ("trace.csv", TRACE)):
        (folder / name).write_text(text, newline="")


@pytest.fixture
def make(tmp_path: Path) -> Any:
    write_files(tmp_path)

    def make(seed: int = 7, fleet: list[FleetNode] = FLEET, cut: dict[str, float] | None = None) -> Plan:
        experiment = load_experiment(tmp_path / "e.yaml", environ={})
        trace = None if cut is None else TraceCut(tmp_path / "trace.csv", **cut)
        return plan_experiment(experiment, load_profile(experiment.load_file), seed, Scene(fleet), trace)

    make.folder = tmp_path  # type: ignore[attr-defined]  # so that a test may change a file
    return make


def test_golden_bytes(make: Any) -> None:
    """A change here changes what a seed means: say so in the changelog, and write the file anew (UPDATE_GOLDEN=1)."""
    text = make().to_json()
    golden = GOLDEN / "plan-seed-7.json"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_the_order_of_the_fleet_does_not_matter(make: Any) -> None:
    assert make(fleet=FLEET[::-1]).to_json() == make().to_json()


def test_another_process_makes_the_same_bytes(make: Any) -> None:
    """With another hash seed, locale and working directory."""
    code = (
        "from pathlib import Path; from harness.faults.pick import FleetNode; from harness.plan import plan_experiment;"
        "from harness.faults.scene import Scene; from harness.spec.experiment import load_experiment;"
        "from harness.spec.loadprofile import load_profile; import sys;"
        "fleet = [FleetNode(f'{p}-{i}', {'pool': p}, 4) for p in ('spot', 'on-demand') for i in (1, 2, 3)];"
        "e = load_experiment(Path(sys.argv[1]));"
        "sys.stdout.write(plan_experiment(e, load_profile(e.load_file), 7, Scene(fleet), None).to_json())"
    )
    env = {**os.environ, "PYTHONHASHSEED": "99", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-c", code, str(make.folder / "e.yaml")]
    done = subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, check=True)
    assert done.stdout == make().to_json()


def test_seeds_differ(make: Any) -> None:
    assert len({make(seed).schedule.sha256() for seed in range(20)}) == 20


def test_what_a_plan_says(make: Any) -> None:
    data = json.loads(make().to_json())
    assert [fault["fault_id"] for fault in data["faults"]] == [
        "pause_load-1", "apply_objects-1", "spot_interruption-1", "spot_interruption-2",
    ]  # fmt: skip
    pause, objects, two, one = data["faults"]
    assert pause["targets"] == ["load"]
    assert objects["targets"] == ["PodGroup/inference/gang-b", "Namespace/other"]
    assert two["blast_radius"] == {"nodes": 2, "gpus": 8}
    assert two["arguments"] == {"after_s": 200.0, "nodes": {"selector": "pool=spot", "count": 2}, "notice_s": 120.0}
    # Three spot nodes, and no node is taken twice.
    assert sorted(two["targets"] + one["targets"]) == ["spot-1", "spot-2", "spot-3"]
    assert str(make.folder) not in make().to_json()


def test_targets_vary_with_the_seed(make: Any) -> None:
    assert len({make(seed).faults[2].targets for seed in range(20)}) == 6


def test_more_nodes_than_there_are(make: Any) -> None:
    with pytest.raises(BadInput) as caught:
        make(fleet=FLEET[:2] + FLEET[3:])
    assert caught.value.where is not None
    assert caught.value.where.key == "method.3.provider.arguments.nodes"
    assert caught.value.where.line == 26
    assert "spot-1, spot-2 already go to earlier faults" in caught.value.message


def test_a_promise_of_bursts_is_kept_or_refused(make: Any) -> None:
    profile = make.folder / "load.yaml"
    profile.write_text(PROFILE + "peak_to_mean_min: 40\n")
    with pytest.raises(BadInput, match=r"of seed 7 has a peak-to-mean of .*, but the profile promises 40") as caught:
        make()
    assert caught.value.where is not None
    assert caught.value.where.line == PROFILE.count("\n") + 1


def test_no_request_at_all(make: Any) -> None:
    start, end = PROFILE.index("arrivals:"), PROFILE.index("tokens:")
    (make.folder / "load.yaml").write_text(
        f"{PROFILE[:start]}arrivals: {{kind: poisson, rate_per_s: 0.0001}}\n{PROFILE[end:]}"
    )
    with pytest.raises(BadInput, match="no request arrives with seed 7"):
        make()


class TestTrace:
    def test_rows_become_requests(self, make: Any) -> None:
        plan = make(cut={"start_s": 10.0, "duration_s": 100.0, "speed": 4.0})
        assert plan.schedule.rows == 100
        assert plan.schedule.prompt_tokens[:2].tolist() == [110, 111]
        # Row 10 lies 1 µs (ten units of the seventh decimal) after second 10.
        assert plan.schedule.t_ns[:2].tolist() == [250, 250_000_275]
        assert (plan.clock_s, plan.duration_s) == (25.0, 375.0)

    def test_long_rows_are_shortened_and_counted(self, make: Any) -> None:
        plan = make(cut={"start_s": 0.0, "duration_s": 110.0, "speed": 4.0})
        assert plan.schedule.output_tokens.max() == 450
        assert plan.trace is not None
        assert plan.trace.shortened_rows == 59
        assert json.loads(plan.to_json())["load"]["trace"]["file"] == "trace.csv"

    def test_the_promise_of_bursts_is_the_profiles_own(self, make: Any) -> None:
        (make.folder / "load.yaml").write_text(PROFILE + "peak_to_mean_min: 40\n")
        assert make(cut={"duration_s": 110.0, "speed": 4.0}).peak_to_mean_min is None

    def test_faults_must_fit_into_the_cut(self, make: Any) -> None:
        with pytest.raises(BadInput, match="but the trace ends at 150 s"):
            make(cut={"duration_s": 100.0, "speed": 10.0})

    def test_the_seed_does_not_matter_to_rows(self, make: Any) -> None:
        cut = {"duration_s": 110.0, "speed": 4.0}
        assert make(1, cut=cut).schedule.sha256() == make(2, cut=cut).schedule.sha256()


def test_describe_is_plain_text(make: Any) -> None:
    text = describe(make())
    assert "Two nodes go" in text
    assert "seed        7" in text
    assert "spot_interruption-1 from 200 to 320 s: spot-" in text
    assert "(2 nodes, 8 GPUs)" in text
    assert "no steady-state-hypothesis" in text
    assert "\x1b" not in text
    assert "trace.csv, trace seconds 0 to 110 at speed 4; 59 rows shortened" in describe(
        make(cut={"duration_s": 110.0, "speed": 4.0})
    )


def test_a_negative_seed(make: Any) -> None:
    with pytest.raises(BadInput, match="--seed is -1"):
        make(-1)
