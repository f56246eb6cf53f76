"""What an experiment applies suits the components of its target, at the start and when an action brings it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fakes.config import WorldConfig
from harness.kube.port import DEPLOYMENT, Json
from harness.targets.applied import as_applied, as_applied_later
from harness.targets.base import Connection
from harness.targets.manifests import read_manifests

LATER = Path(__file__).parents[3] / "experiments/nodes/manifests/llm-more.yaml"
CONFIG = WorldConfig(seed=1, pools=(), time_scale=10)


def _connection(tmp_path: Path, target: str, world: str) -> Connection:
    return Connection(target, tmp_path / "kubeconfig", "http://x", None, "inference", 10.0, world=world)


def _deployment() -> Json:
    ((_, deployment),) = read_manifests([LATER])
    return deployment


def test_who_knows_the_time_scale_takes_it_as_it_is() -> None:
    assert as_applied("embedded", _deployment(), CONFIG) == _deployment()
    assert as_applied("kubeconfig", _deployment(), CONFIG) == _deployment()


def test_a_real_control_plane_counts_on_the_clock_and_leaves_the_pod_to_hollow_kubelets() -> None:
    obj = _deployment()
    obj["spec"]["minReadySeconds"] = 30
    made = as_applied("controlplane", obj, CONFIG)
    assert made["spec"]["minReadySeconds"] == 3
    assert made["spec"]["template"] == obj["spec"]["template"]


def test_what_an_action_brings_is_made_ready_as_what_was_there_at_the_start(tmp_path: Path) -> None:
    world = tmp_path / "world.json"
    world.write_text(CONFIG.to_json())
    for target in ("node", "kind"):
        connection = _connection(tmp_path, target, str(world))
        ((_, made),) = as_applied_later(connection, [(DEPLOYMENT, _deployment())])
        assert made == as_applied(target, _deployment(), CONFIG)
        (container,) = made["spec"]["template"]["spec"]["containers"]
        assert container["command"][:3] == ["python3", "-m", "fakes.vllm"]
    untouched = as_applied_later(_connection(tmp_path, "embedded", ""), [(DEPLOYMENT, _deployment())])
    assert untouched == ((DEPLOYMENT, _deployment()),)


def test_a_real_component_is_called_where_it_is_here() -> None:
    config = replace(CONFIG, called={"prometheus.monitoring.svc:9090": "127.0.0.1:4711"})
    trigger = {"metadata": {"serverAddress": "http://prometheus.monitoring.svc:9090/x", "threshold": "2"}}
    obj: Json = {"metadata": {"name": "llm"}, "spec": {"triggers": [trigger], "pollingInterval": 2}}
    made = as_applied("controlplane", obj, config)
    assert made["spec"]["triggers"][0]["metadata"]["serverAddress"] == "http://127.0.0.1:4711/x"
    assert made["spec"]["pollingInterval"] == 2
    assert trigger["metadata"]["serverAddress"].startswith("http://prometheus."), "what was read stays as it was"
    assert WorldConfig.from_json(config.to_json()) == config
