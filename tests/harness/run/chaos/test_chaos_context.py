from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.clock import START_NS_ENV, monotonic_ns
from harness.errors import BadInput, InternalError, TargetError
from harness.run.chaos import context as contexts
from harness.run.chaos.context import PlannedTargets, build_context, fault_ids
from harness.run.chaos.interrupt import Interruption
from harness.targets.base import CONNECTION_ENV, Connection

EXPERIMENT: dict[str, Any] = {
    "extensions": [
        {
            "name": "gpu-harness",
            "time_scale": 15,
            "workload": {"namespace": "inference", "selector": "app=llm"},
            "phases": {"recovery_s": 160},
        }
    ]
}


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        CONNECTION_ENV, START_NS_ENV, contexts.RUN_DIR_ENV, contexts.LOAD_START_ENV, contexts.SEED_ENV,
        contexts.WORKING_DIR_ENV,
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def write_connection(path: Path, time_scale: float = 15) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Connection("embedded", Path("/kubeconfig"), "http://s", None, "inference", time_scale).write(path)


def test_under_the_supervisor_everything_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run_dir = tmp_path / "run"
    write_connection(run_dir / "connection.json")
    plan = {"seed": 5, "faults": [{"fault_id": "spot_interruption-1", "action": "x", "targets": ["spot-1"]}]}
    (run_dir / "plan.json").write_text(json.dumps(plan))
    monkeypatch.setenv(contexts.RUN_DIR_ENV, str(run_dir))
    monkeypatch.setenv(START_NS_ENV, str(monotonic_ns() - 10**9))
    monkeypatch.setenv(contexts.LOAD_START_ENV, "250000000")
    monkeypatch.setenv(contexts.WORKING_DIR_ENV, "/somewhere")
    run = build_context(EXPERIMENT, None, Interruption())
    assert (run.run_dir, run.load_start_ns, run.plan.seed) == (run_dir, 250_000_000, 5)
    assert run.plan.targets == {"spot_interruption-1": ("spot-1",)}
    assert run.clock.now_ns() >= 10**9 and run.clock.time_scale == 15
    assert (run.settings.recovery_s, run.settings.selector) == (160, "app=llm")
    assert (run.folders, run.go_file) == ((Path("/somewhere"),), None)
    monkeypatch.delenv(contexts.LOAD_START_ENV)
    assert build_context(EXPERIMENT, None, Interruption()).go_file == run_dir / "load" / "go"


def test_under_plain_chaos_run_there_is_a_folder_beside_the_connection(tmp_path: Path) -> None:
    write_connection(tmp_path / ".gpu-harness" / "connection.json")
    (tmp_path / "experiments").mkdir()
    source = tmp_path / "experiments" / "e.yaml"
    source.touch()
    first, second = (build_context(EXPERIMENT, str(source), Interruption()) for _ in range(2))
    assert first.run_dir.parent == tmp_path / ".gpu-harness" and first.run_dir != second.run_dir
    assert first.run_dir.is_dir() and first.plan == PlannedTargets(0)
    assert 0 <= first.load_start_ns <= first.clock.now_ns()
    assert first.folders == (tmp_path / "experiments", tmp_path)


def test_files_are_looked_for_beside_the_experiment_first(tmp_path: Path) -> None:
    write_connection(tmp_path / ".gpu-harness" / "connection.json")
    for folder in ("", "experiments"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "gang.yaml").touch()
    (tmp_path / "only-here.yaml").touch()
    source = tmp_path / "experiments" / "e.yaml"
    source.touch()
    run = build_context(EXPERIMENT, str(source), Interruption())
    assert run.find("gang.yaml") == tmp_path / "experiments" / "gang.yaml"
    assert run.find("only-here.yaml") == tmp_path / "only-here.yaml"
    with pytest.raises(BadInput, match=r"no file nowhere\.yaml"):
        run.find("nowhere.yaml")


def test_without_a_connection_it_says_how_to_get_one() -> None:
    with pytest.raises(TargetError, match="no connection to read"):
        build_context(EXPERIMENT, None, Interruption())


def test_a_cluster_at_another_time_scale_is_refused(tmp_path: Path) -> None:
    write_connection(tmp_path / ".gpu-harness" / "connection.json", time_scale=10)
    with pytest.raises(BadInput, match="runs at time_scale 15, the cluster at 10"):
        build_context(EXPERIMENT, None, Interruption())


@pytest.mark.parametrize(
    "experiment",
    [
        {},
        {"extensions": [{"name": "other"}]},
        {"extensions": EXPERIMENT["extensions"] * 2},
        {"extensions": [{"name": "gpu-harness"}]},
        {
            "extensions": [
                {"name": "gpu-harness", "time_scale": "fast", "workload": {"namespace": "a", "selector": "b"}}
            ]
        },
    ],
)
def test_an_extension_that_cannot_be_read_is_bad_input(experiment: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="extension"):
        build_context(experiment, None, Interruption())


def test_a_damaged_plan_is_an_error_not_a_fresh_pick(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"faults": 3')
    with pytest.raises(InternalError, match=r"plan\.json cannot be read"):
        PlannedTargets.read(tmp_path, 0)


def test_fault_ids_count_by_function_in_method_order() -> None:
    def action(func: str, module: str = "harness.run.chaos.actions") -> dict[str, Any]:
        return {"type": "action", "provider": {"type": "python", "module": module, "func": func}}

    method = [action("spot"), action("gang"), action("spot", "elsewhere"), action("heal"), action("spot"), {"ref": "x"}]
    ids = fault_ids(method, frozenset({"spot", "gang"}))
    assert [ids.get(id(activity)) for activity in method] == ["spot-1", "gang-1", None, None, "spot-2", None]


def test_without_a_context_nothing_may_be_touched() -> None:
    contexts.set_current(None)
    with pytest.raises(InternalError, match="the control of gpu-harness did not run"):
        contexts.current()
