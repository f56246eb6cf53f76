from __future__ import annotations

import pytest
import yaml

from fakes.config import PlantedBug, PoolConfig, WorldConfig
from harness.errors import BadInput, Where
from harness.targets.applied import as_applied
from harness.targets.bugs import ON_KIND, refuse_bugs_without_a_place
from harness.targets.kind.objects import device_plugins, kubeconfig_on_the_node

LLM = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, namespace: inference}
spec:
  template:
    metadata: {annotations: {gpu-harness.dev/latency-profile: llama-8b-h100}}
    spec:
      terminationGracePeriodSeconds: 70
      containers:
        - {name: vllm, image: "vllm/vllm-openai:v0.32.0", args: [--served-model-name, m]}
"""


def world(*bugs: PlantedBug) -> WorldConfig:
    pools = (PoolConfig("a", "spot", gpus=2), PoolConfig("b", "spot", gpus=4), PoolConfig("c", "spot", gpus=2))
    return WorldConfig(seed=1, time_scale=5.0, pools=pools, planted_bugs=frozenset(bugs))


def test_there_is_a_device_plugin_for_each_number_of_gpus() -> None:
    made = [p["spec"]["template"]["spec"] for p in device_plugins(world())]
    assert [pod["nodeSelector"] for pod in made] == [{"nvidia.com/gpu.count": "2"}, {"nvidia.com/gpu.count": "4"}]
    assert [pod["containers"][0]["command"][-1] for pod in made] == ["nvidia.com/gpu=2", "nvidia.com/gpu=4"]


def test_a_model_server_loads_and_is_as_wrong_as_the_world_wants_it() -> None:
    made = as_applied("kind", yaml.safe_load(LLM), world(PlantedBug.SERVER_ABORTS_ON_SIGTERM))
    pod = made["spec"]["template"]["spec"]
    command = pod["containers"][0]["command"]
    assert command[:3] == ["python3", "-m", "fakes.vllm"]
    assert {"--time-scale=5", "--model-load-s=15", "--abort-on-sigterm"} <= set(command)
    assert pod["terminationGracePeriodSeconds"] == 14
    well = as_applied("kind", yaml.safe_load(LLM), world())["spec"]["template"]["spec"]["containers"][0]
    assert "--abort-on-sigterm" not in well["command"]


def test_bugs_of_what_is_real_here_are_refused_by_name() -> None:
    refuse_bugs_without_a_place(ON_KIND, ON_KIND, "kind", Where("x.yaml"))
    with pytest.raises(BadInput, match="hpa_thrashes cannot be planted on the target kind"):
        refuse_bugs_without_a_place([PlantedBug.HPA_THRASHES], ON_KIND, "kind", Where("x.yaml"))


def test_the_front_asks_the_api_server_where_that_listens_itself() -> None:
    text = yaml.safe_dump({"clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:39999"}}]})
    assert yaml.safe_load(kubeconfig_on_the_node(text))["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
