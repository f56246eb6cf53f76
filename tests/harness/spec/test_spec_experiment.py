"""What a good experiment becomes, and that the mirrors of other parts agree with them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from fakes.config import PlantedBug, PoolConfig, WorldConfig
from fakes.timing import PRESETS
from harness.errors import BadInput
from harness.faults.catalogue.spot_interruption import SpotInterruption
from harness.spec.actions import ACTIONS
from harness.spec.checks import CHECK_SPECS, QuantileLimit, SloSpec
from harness.spec.experiment import load_experiment
from harness.spec.probes import PROBES
from harness.spec.world import CapacityType, PlantedBugName, PoolSpec, PresetName, WorldSpec
from harness.targets.wanted import world_config

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = sorted([*(ROOT / "experiments").glob("*.yaml"), *(ROOT / "experiments" / "negative").glob("*.yaml")])

HEAL = {
    "type": "action",
    "name": "heal",
    "provider": {"type": "python", "module": "harness.run.chaos.actions", "func": "heal"},
}


def interruption(after_s: object = 320, **more: object) -> dict[str, Any]:
    arguments = {"after_s": after_s, "nodes": {"selector": "pool=spot"}, "notice_s": 120}
    provider = {
        "type": "python",
        "module": "harness.run.chaos.actions",
        "func": "spot_interruption",
        "arguments": arguments,
    }
    return {"type": "action", "name": "interrupt", "provider": provider, **more}


def experiment(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "title": "t",
        "description": "d",
        "controls": [{"name": "gpu-harness", "provider": {"type": "python", "module": "harness.run.chaos.control"}}],
        "method": [interruption()],
        "rollbacks": [HEAL],
        "extensions": [
            {
                "name": "gpu-harness",
                "time_scale": 15,
                "workload": {"namespace": "inference", "selector": "app=llm", "model": "llama-8b"},
                "load": "load.yaml",
                "checks": [{"pdb": None}],
            }
        ],
    }
    return base | changes


def ours(**changes: Any) -> list[dict[str, Any]]:
    return [experiment()["extensions"][0] | changes]


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def load(data: dict[str, Any], environ: dict[str, str] | None = None, name: str = "e.yaml") -> Any:
        (tmp_path / "load.yaml").write_text("title: x\n")
        (tmp_path / name).write_text(
            json.dumps(data) if name.endswith(".json") else yaml.safe_dump(data, sort_keys=False)
        )
        return load_experiment(tmp_path / name, environ={} if environ is None else environ)

    return load


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped_experiments_are_good(path: Path) -> None:
    found = load_experiment(path, environ={})
    assert found.has_hypothesis
    assert all(file.is_file() for file in found.files)


def test_yaml_and_json_are_one(load: Any) -> None:
    a, b = load(experiment()), load(experiment(), name="e.json")
    assert (a.raw, a.settings, a.actions) == (b.raw, b.settings, b.actions)


def test_raw_is_the_file_and_a_copy(load: Any) -> None:
    data = experiment()
    found = load(data)
    assert found.raw == data
    found.raw["method"].clear()
    assert found.document.data == data


def test_actions_are_numbered_by_function(load: Any) -> None:
    found = load(experiment(method=[interruption(10), HEAL, interruption(140)]))
    assert [action.fault_id for action in found.actions] == ["spot_interruption-1", "spot_interruption-2"]
    assert [action.at for action in found.actions] == [("method", 0), ("method", 2)]


def test_limits_of_an_slo(load: Any) -> None:
    slo = {"slo": {"ttft_ms_p95": 3000, "ttft_sent_ms_p999": 1.5, "phase": "steady"}}
    (check,) = load(experiment(extensions=ours(checks=[slo]))).settings.checks
    assert isinstance(check, SloSpec)
    assert check.limits == (
        QuantileLimit("ttft_ms_p95", "ttft_ms", 0.95, 3000.0),
        QuantileLimit("ttft_sent_ms_p999", "ttft_sent_ms", 0.999, 1.5),
    )
    assert (check.phase, check.good_ratio_min) == ("steady", None)


def test_one_slo_per_phase(load: Any) -> None:
    slos = [{"slo": {"ttft_ms_p95": 1, "phase": phase}} for phase in ("steady", "fault", "steady")]
    assert len(load(experiment(extensions=ours(checks=slos[:2]))).settings.checks) == 2
    with pytest.raises(BadInput, match="slo of phase 'steady' is asked for twice"):
        load(experiment(extensions=ours(checks=slos)))


class TestVariables:
    def after_s(self, found: Any) -> float:
        arguments = found.actions[0].fault
        assert isinstance(arguments, SpotInterruption)
        return arguments.after_s

    def test_configuration(self, load: Any) -> None:
        found = load(experiment(configuration={"after": 200}, method=[interruption("${after}")]))
        assert self.after_s(found) == 200
        assert found.raw["method"][0]["provider"]["arguments"]["after_s"] == "${after}"

    def test_environment(self, load: Any) -> None:
        env = {"type": "env", "key": "AFTER", "env_var_type": "int", "default": 100}
        data = experiment(configuration={"after": env}, method=[interruption("${after}")])
        assert self.after_s(load(data)) == 100
        assert self.after_s(load(data, {"AFTER": "50"})) == 50
        with pytest.raises(BadInput, match='"soon" cannot be read as int'):
            load(data, {"AFTER": "soon"})

    def test_unset_environment(self, load: Any) -> None:
        with pytest.raises(BadInput, match="the environment has no AFTER"):
            load(experiment(configuration={"after": {"type": "env", "key": "AFTER"}}))

    def test_wrong_type_is_told_at_the_argument(self, load: Any) -> None:
        with pytest.raises(BadInput, match='is "2m", but must be a number of seconds') as caught:
            load(experiment(configuration={"after": "2m"}, method=[interruption("${after}")]))
        assert caught.value.where is not None
        assert caught.value.where.key == "method.0.provider.arguments.after_s"

    @pytest.mark.parametrize("late", ["configuration", "secrets"])
    def test_late_values_cannot_be_planned(self, load: Any, late: str) -> None:
        probe = {"type": "probe", "name": "p", "provider": {"type": "python", "module": "a.b", "func": "c"}}
        known = {"after": probe} if late == "configuration" else {"group": {"after": {"type": "env", "key": "K"}}}
        with pytest.raises(BadInput, match=r"the value of \$\{after\} is not known before the run"):
            load(experiment(**{late: known}, method=[interruption("${after}")]))

    def test_secrets_and_escapes_are_defined(self, load: Any) -> None:
        text = "${token} $${literal} $HOME"
        other = {"type": "action", "name": text, "provider": {"type": "http", "url": "http://x/${token}"}}
        load(experiment(secrets={"group": {"token": "t"}}, method=[other]))


def test_pauses_are_fine_in_real_time(load: Any) -> None:
    load(experiment(extensions=ours(time_scale=1), method=[interruption(pauses={"after": 3})]))


def test_late_background_actions_do_not_bind_the_order(load: Any) -> None:
    load(experiment(method=[interruption(300, background=True), interruption(200)]))


def test_activities_of_other_providers(load: Any) -> None:
    others = [
        {
            "type": "probe",
            "name": "a",
            "provider": {"type": "python", "module": "chaosk8s.pod.probes", "func": "count"},
        },
        {
            "type": "action",
            "name": "b",
            "provider": {"type": "process", "path": "echo", "arguments": "x", "timeout": 5},
        },
        {"type": "probe", "name": "c", "provider": {"type": "http", "url": "http://127.0.0.1/x", "timeout": 3}},
        {"ref": "a"},
    ]
    assert load(experiment(method=others)).actions == ()


def test_the_world_is_the_one_of_the_fakes(load: Any) -> None:
    assert {f.name for f in dataclasses.fields(PoolConfig)} == set(PoolSpec.model_fields)
    ask = {"name": "spot", "capacity_type": "spot", "nodes": 1}
    assert PoolConfig(**PoolSpec(**ask).model_dump()) == PoolConfig(**ask)
    assert set(get_args(PlantedBugName)) == {bug.value for bug in PlantedBug}
    assert set(get_args(PresetName)) == set(PRESETS)
    assert set(get_args(CapacityType)) == {"spot", "on-demand"}
    own = {"seed", "time_scale", "gateway_namespace", "gateway_service", "aside", "called"}
    assert {f.name for f in dataclasses.fields(WorldConfig)} == own | set(WorldSpec.model_fields)


def test_the_world_config_can_be_read_by_the_fakes(load: Any) -> None:
    world = {"pools": [{"name": "spot", "capacity_type": "spot", "nodes": 1}], "planted_bugs": ["hpa_blind"]}
    written = world_config(load(experiment(extensions=ours(world=world))), seed=7)
    config = WorldConfig.from_json(written.to_json())
    assert config == written
    assert (config.seed, config.time_scale, config.gateway_service) == (7, 15, "llm")
    assert config.has(PlantedBug.HPA_BLIND)


def test_registries_name_what_chaos_toolkit_calls() -> None:
    """Chaos Toolkit checks arguments against the signature too; both must say the same."""
    from harness.run.chaos import actions, probes

    for module, known in ((actions, ACTIONS), (probes, PROBES)):
        assert set(module.__all__) == set(known)
        for name, model in known.items():
            signature = set(inspect.signature(getattr(module, name)).parameters) - {"configuration", "secrets"}
            assert signature == set(model.model_fields), name


def test_checks_are_those_that_can_be_judged() -> None:
    from harness.checks.judge import CHECKS

    assert set(CHECK_SPECS) == set(CHECKS)


def test_experiments_do_not_share_their_data(load: Any) -> None:
    data = experiment()
    before = copy.deepcopy(data)
    load(data)
    assert data == before
