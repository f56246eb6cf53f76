"""The real ``chaos run``, as a process of its own, on the embedded API and cloud."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import yaml
from chaos_world import ChaosRun, action, chaos_run, experiment, spot

from harness.kube.port import CONFIG_MAP, NotFound

MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra", "namespace": "inference"}}
SPOT_ID = "spot_interruption-1"
FAR_S = 1e6


@pytest.fixture
def run(tmp_path: Path) -> Iterator[ChaosRun]:
    (tmp_path / "extra.yaml").write_text(yaml.safe_dump(MANIFEST))
    with chaos_run(tmp_path) as run:
        yield run


def extra_exists(run: ChaosRun) -> bool:
    try:
        run.world.do(run.world.kube.get(CONFIG_MAP, "extra", "inference"))
    except NotFound:
        return False
    return True


def test_an_experiment_runs_through_with_the_planned_targets(run: ChaosRun) -> None:
    written = experiment(action("apply_objects", manifest="extra.yaml"), spot(), secrets={"k": {"token": "S3CRET"}})
    run.prepare(written, targets={SPOT_ID: ["spot-3"]})
    run.start()
    assert run.wait() == 0, run.log
    assert (run.outcome.status, run.outcome.failed) == ("completed", ())
    assert "S3CRET" not in (run.folder / "chaos.json").read_text() + run.log
    assert run.stages(SPOT_ID) == ["planned", "injected", "observed", "ended", "healing", "healed"]
    assert run.stages("apply_objects-1") == ["planned", "injected", "observed", "healing", "healed"]
    assert run.marks() == {"chaos_ready": "", "steady_state_before": "met", "steady_state_after": "met"}
    assert run.world.states() == {"spot-1": "running", "spot-2": "running", "spot-3": "terminated"}
    assert len(run.undo.entries) == 2 and run.undo.pending == () and not extra_exists(run)


def test_a_planned_target_that_is_gone_is_picked_anew_with_the_plans_seed(run: ChaosRun) -> None:
    run.prepare(experiment(spot()), seed=7, targets={SPOT_ID: ["spot-9"]})
    run.start()
    assert run.wait() == 0, run.log
    expected = Random(f"7:{SPOT_ID}").sample(["spot-1", "spot-2", "spot-3"], 1)
    assert {tuple(e["targets"]) for e in run.events() if e["stage"] == "observed"} == {tuple(expected)}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_an_action_ends_it_at_once_and_the_rollback_heals(
    run: ChaosRun, number: signal.Signals
) -> None:
    run.prepare(experiment(spot(notice_s=FAR_S), action("apply_objects", manifest="extra.yaml")))
    run.start()
    run.until_stage("observed")
    assert run.process is not None
    run.process.send_signal(number)
    assert run.wait() == 1
    assert run.outcome.status == "interrupted", run.log
    assert [(a.part, a.name, a.status) for a in run.outcome.activities if a.part == "rollback"] == [
        ("rollback", "heal", "succeeded")
    ]
    assert [a.name for a in run.outcome.activities if a.part == "method"] == ["spot_interruption"]
    assert run.stages() == ["planned", "injected", "observed", "healing", "healed"]
    assert run.undo.pending == () and set(run.world.states().values()) == {"running"}


def test_a_signal_before_the_action_is_due_leaves_everything_untouched(run: ChaosRun) -> None:
    run.prepare(experiment(spot(after_s=FAR_S)))
    run.start()
    run.until(lambda: "Action: spot_interruption" in run.log)
    assert run.process is not None
    run.process.terminate()
    assert run.wait() == 1
    assert run.outcome.status == "interrupted"
    assert (run.events(), run.undo.entries) == ([], ())


def test_a_signal_during_the_steady_state_probe_is_no_verdict_on_it(run: ChaosRun) -> None:
    content = experiment(spot())
    content["steady-state-hypothesis"]["probes"][0]["provider"]["arguments"]["after_s"] = FAR_S
    run.prepare(content)
    run.start()
    run.until(lambda: "Probe: the workload is steady" in run.log)
    assert run.process is not None
    run.process.terminate()
    assert run.wait() == 1
    assert (run.outcome.status, run.marks()) == ("interrupted", {"chaos_ready": "", "steady_state_before": "error"})


def test_a_signal_while_recovery_is_held_ends_the_hold(run: ChaosRun) -> None:
    content = experiment(action("apply_objects", manifest="extra.yaml"))
    content["extensions"][0]["phases"] = {"recovery_s": FAR_S}
    run.prepare(content)
    run.start()
    run.until_stage("observed")
    assert run.process is not None
    run.process.terminate()
    assert run.wait() == 1
    assert run.outcome.status == "interrupted" and not extra_exists(run)


@pytest.mark.parametrize("cluster_too", [False, True])
def test_without_its_parent_it_heals_and_ends(run: ChaosRun, cluster_too: bool) -> None:
    run.prepare(experiment(spot(notice_s=FAR_S)))
    parent = run.start_with_parent()
    run.until_stage("observed")
    if cluster_too:
        run.world.close_servers()
    os.close(parent)
    assert run.wait() == 1
    assert run.outcome.status == "interrupted", run.log
    if cluster_too:
        assert len(run.undo.pending) == 1 and run.stages()[-1] == "failed"
    else:
        assert run.undo.pending == () and set(run.world.states().values()) == {"running"}


def test_it_is_ready_before_the_load_and_begins_with_it(run: ChaosRun) -> None:
    run.prepare(experiment(action("apply_objects", manifest="extra.yaml")))
    del run.env["GPU_HARNESS_LOAD_START_NS"]
    run.start()
    run.until(lambda: "chaos_ready" in run.marks())
    assert "Steady state hypothesis" not in run.log
    (run.folder / "load").mkdir()
    (run.folder / "load" / "go.part").write_text("12345")
    (run.folder / "load" / "go.part").rename(run.folder / "load" / "go")
    assert run.wait() == 0, run.log
    assert run.outcome.status == "completed"


def test_an_experiment_without_rollbacks_is_healed_all_the_same(run: ChaosRun) -> None:
    run.prepare(experiment(action("apply_objects", manifest="extra.yaml"), rollbacks=[]))
    run.start()
    assert run.wait() == 0, run.log
    assert run.undo.pending == () and not extra_exists(run)


def test_without_the_control_actions_refuse_to_touch_anything(run: ChaosRun) -> None:
    content = experiment(spot(), controls=[])
    del content["steady-state-hypothesis"]
    run.prepare(content)
    run.start()
    run.wait()
    assert [a.status for a in run.outcome.activities] == ["failed", "failed"]
    assert "the control of gpu-harness did not run" in run.outcome.failed[0].error
    assert run.events() == [] and set(run.world.states().values()) == {"running"}


def test_a_control_that_cannot_start_ends_the_experiment_with_its_reason(run: ChaosRun) -> None:
    run.prepare(experiment(spot()))
    (run.folder / "connection.json").unlink()
    run.start()
    assert run.wait() == 1
    assert run.outcome.status == "interrupted" and "no connection to read" in run.log
    assert [a.part for a in run.outcome.activities] == ["rollback"]
    assert set(run.world.states().values()) == {"running"}


def test_a_baseline_that_is_not_met_injects_nothing(run: ChaosRun) -> None:
    content = experiment(spot())
    content["steady-state-hypothesis"]["probes"][0]["provider"]["arguments"]["ready_min"] = 3
    run.prepare(content)
    run.start()
    run.wait()
    assert run.outcome.steady_before is False and run.marks()["steady_state_before"] == "not_met"
    assert run.events() == [] and "2 replicas are Ready, 2 are wanted and 3 needed" in run.log


def test_too_many_nodes_wanted_fails_the_action_and_is_in_the_history(run: ChaosRun) -> None:
    run.prepare(experiment(spot(count=4)))
    run.start()
    run.wait()
    (event,) = run.events()
    assert event["stage"] == "failed" and "4 wanted, but 3 of 3 nodes match" in event["detail"]
    assert "4 wanted, but 3 of 3 nodes match" in run.outcome.failed[0].error


def test_plain_chaos_run_finds_the_cluster_beside_it(run: ChaosRun) -> None:
    run.prepare(experiment(spot(notice_s=30)))
    run.env.clear()
    (run.folder / ".gpu-harness").mkdir()
    run.write_connection(run.folder / ".gpu-harness" / "connection.json")
    run.start(argv=[sys.executable, "-m", "chaostoolkit", "--no-version-check", "run", "experiment.yaml"])
    assert run.wait() == 0, run.log
    (folder,) = (run.folder / ".gpu-harness").glob("chaos-run-*")
    assert '"healed"' in (folder / "history" / "faults.jsonl").read_text()
    assert list(run.world.states().values()).count("terminated") == 1
