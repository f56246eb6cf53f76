"""A manifest that was written for hollow nodes, as real kubelets get it; nothing else of it changes."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

from fakes.vllm.__main__ import parser
from harness.kube.port import Json
from harness.targets.manifests import read_manifests
from harness.targets.real_pods import SERVE, for_real_kubelets, images_in

LLM = Path(__file__).parents[3] / "experiments/manifests/llm.yaml"


def _tenth(scenario_s: float) -> float:
    return scenario_s / 10


def _deployment() -> Json:
    return next(obj for _, obj in read_manifests([LLM]) if obj["kind"] == "Deployment")


def _pod(**container: object) -> Json:
    return {
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", **container}]},
    }


def test_seconds_of_the_kubelet_are_divided_and_at_least_one() -> None:
    spec = for_real_kubelets(_deployment(), _tenth, 10)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["terminationGracePeriodSeconds"] == 10
    assert container["lifecycle"]["preStop"]["sleep"]["seconds"] == 1
    assert container["readinessProbe"]["periodSeconds"] == 1
    assert container["readinessProbe"]["failureThreshold"] == 3
    assert "timeoutSeconds" not in container["readinessProbe"], "what nobody wrote stays unwritten"


def test_gpus_are_asked_for_and_cpus_are_not() -> None:
    resources = for_real_kubelets(_deployment(), _tenth, 10)["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}


def test_a_model_server_is_our_fake_with_the_same_flags_and_its_profile() -> None:
    (container,) = for_real_kubelets(_deployment(), _tenth, 10)["spec"]["template"]["spec"]["containers"]
    words = [*container["command"], *container["args"]]
    assert tuple(words[: len(SERVE)]) == SERVE
    flags = parser().parse_args(words[3:])
    assert (flags.served_model_name, flags.max_num_seqs, flags.shutdown_timeout) == (["llama-8b"], 8, 85)
    assert (flags.latency_profile, flags.time_scale, flags.port, flags.host) == ("llama-8b-h100", 10, 8000, "0.0.0.0")
    assert container["imagePullPolicy"] == "Never"


def test_vllms_own_command_is_taken_for_what_it_is() -> None:
    pod = for_real_kubelets(
        _pod(image="vllm/vllm-openai", command=["vllm", "serve"], args=["m", "--host=::"]), _tenth, 1
    )
    (container,) = pod["spec"]["containers"]
    assert container["args"] == ["m", "--host=::"]
    assert not any(word.startswith("--host") for word in container["command"])


def test_other_containers_keep_their_command_and_image() -> None:
    pod = _pod(command=["sleep", "5"])
    assert for_real_kubelets(pod, _tenth, 10) == pod


def test_the_original_stays_as_it_was_and_other_kinds_pass() -> None:
    objects = [obj for _, obj in read_manifests([LLM])]
    before = deepcopy(objects)
    after = [for_real_kubelets(obj, _tenth, 10) for obj in objects]
    assert objects == before
    assert [a == b for a, b in zip(after, before, strict=True)] == [b["kind"] != "Deployment" for b in before]


def test_images_are_named_once() -> None:
    objects = [obj for _, obj in read_manifests([LLM])]
    assert images_in([*objects, *objects]) == ["vllm/vllm-openai:v0.32.0"]
