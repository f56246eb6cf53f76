"""A manifest that was written for hollow nodes, as real kubelets get it; nothing else of it changes."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from fakes.config import PlantedBug, ProcessImage, WorldConfig
from fakes.vllm.__main__ import parser
from harness.kube.port import Json
from harness.targets.manifests import read_manifests
from harness.targets.real_pods import BUG_FLAGS, SERVE, for_real_kubelets, images_in, images_of_ours


def _config(time_scale: float = 1, **more: Any) -> WorldConfig:
    return WorldConfig(seed=1, time_scale=time_scale, pools=(), **more)


TENTH = _config(time_scale=10)
LLM = Path(__file__).parents[3] / "experiments/manifests/llm.yaml"


def _deployment() -> Json:
    return next(obj for _, obj in read_manifests([LLM]) if obj["kind"] == "Deployment")


def _pod(**container: object) -> Json:
    return {
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", **container}]},
    }


def test_seconds_of_the_kubelet_are_divided_and_at_least_one() -> None:
    spec = for_real_kubelets(_deployment(), TENTH)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["terminationGracePeriodSeconds"] == 10
    assert container["lifecycle"]["preStop"]["sleep"]["seconds"] == 1
    assert container["readinessProbe"]["periodSeconds"] == 1
    assert container["readinessProbe"]["failureThreshold"] == 3
    assert "timeoutSeconds" not in container["readinessProbe"], "what nobody wrote stays unwritten"


def test_gpus_are_asked_for_and_cpus_are_not() -> None:
    resources = for_real_kubelets(_deployment(), TENTH)["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}


def test_a_model_server_is_our_fake_with_the_same_flags_and_its_profile() -> None:
    (container,) = for_real_kubelets(_deployment(), TENTH)["spec"]["template"]["spec"]["containers"]
    words = [*container["command"], *container["args"]]
    assert tuple(words[: len(SERVE)]) == SERVE
    flags = parser().parse_args(words[3:])
    assert (flags.served_model_name, flags.max_num_seqs, flags.shutdown_timeout) == (["llama-8b"], 8, 85)
    assert (flags.latency_profile, flags.time_scale, flags.port, flags.host) == ("llama-8b-h100", 10, 8000, "0.0.0.0")
    assert container["imagePullPolicy"] == "Never"


def test_vllms_own_command_is_taken_for_what_it_is() -> None:
    pod = for_real_kubelets(
        _pod(image="vllm/vllm-openai", command=["vllm", "serve"], args=["m", "--host=::"]),
        _config(),
    )
    (container,) = pod["spec"]["containers"]
    assert container["args"] == ["m", "--host=::"]
    assert not any(word.startswith("--host") for word in container["command"])


def test_other_containers_keep_their_command_and_image() -> None:
    pod = _pod(command=["sleep", "5"])
    assert for_real_kubelets(pod, TENTH) == pod


def test_the_original_stays_as_it_was_and_other_kinds_pass() -> None:
    objects = [obj for _, obj in read_manifests([LLM])]
    before = deepcopy(objects)
    after = [for_real_kubelets(obj, TENTH) for obj in objects]
    assert objects == before
    assert [a == b for a, b in zip(after, before, strict=True)] == [b["kind"] != "Deployment" for b in before]


def test_images_are_named_once() -> None:
    objects = [obj for _, obj in read_manifests([LLM])]
    assert images_in([*objects, *objects]) == ["vllm/vllm-openai:v0.32.0"]


def test_images_that_nodes_must_have_are_those_that_we_say_what_runs_in() -> None:
    config = _config(processes=(ProcessImage("served", ("serve",)),))
    found = images_of_ours(["busybox", "a/vllm:1", "served:2"], config)
    assert found == ["docker.io/a/vllm:1", "docker.io/library/served:2"]


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("vllm:1", "docker.io/library/vllm:1"),
        ("vllm-cpu", "docker.io/library/vllm-cpu:latest"),
        ("vllm/vllm-openai:v1", "docker.io/vllm/vllm-openai:v1"),
        ("localhost/vllm:1", "localhost/vllm:1"),
        ("registry.example/vllm:1", "registry.example/vllm:1"),
        ("registry.example.com:5000/a/vllm", "registry.example.com:5000/a/vllm:latest"),
    ],
)
def test_images_are_named_as_nodes_look_for_them(image: str, name: str) -> None:
    assert images_of_ours([image], _config()) == [name]


def test_each_planted_bug_of_the_model_server_is_a_flag_that_it_takes() -> None:
    config = _config(planted_bugs=frozenset(BUG_FLAGS))
    (container,) = for_real_kubelets(_pod(image="vllm"), config)["spec"]["containers"]
    parser().parse_args(container["command"][3:])
    assert set(BUG_FLAGS.values()) <= set(container["command"])
    (well,) = for_real_kubelets(_pod(image="vllm"), _config())["spec"]["containers"]
    assert not set(BUG_FLAGS.values()) & set(well["command"])
    assert PlantedBug.SERVER_ABORTS_ON_SIGTERM in BUG_FLAGS


PROCESS = ProcessImage(
    "vllm-cpu",
    ("/venv/bin/vllm", "serve", "/model", "--host", "{host}", "--port", "{port}", "--name={pod}", "{args}"),
    (("HF_HUB_OFFLINE", "1"), ("MINE", "no")),
    ("/venv", "/model"),
)


def test_a_real_program_runs_in_its_pod_and_sees_what_it_needs_of_the_machine_and_may_write_none_of_it() -> None:
    config = _config(processes=(PROCESS,))
    pod = _pod(
        image="vllm-cpu:1", args=["--max-num-seqs", 4], ports=[{"containerPort": 9000}],
        env=[{"name": "MINE", "value": "yes"}],
    )  # fmt: skip
    spec = for_real_kubelets(pod, config)["spec"]
    (container,) = spec["containers"]
    words = "/venv/bin/vllm serve /model --host 0.0.0.0 --port 9000 --name=$(POD_NAME) --max-num-seqs 4"
    assert container["command"] == words.split()
    assert "args" not in container
    env = {v["name"]: v.get("value") for v in container["env"]}
    assert (env["HF_HUB_OFFLINE"], env["MINE"], env["PYTHONPATH"], env["POD_NAME"]) == ("1", "yes", "", None)
    assert len(env) == len(container["env"]), "each once"
    where = {v["name"]: v.get("hostPath", {}).get("path") for v in spec["volumes"]}
    seen = {m["mountPath"]: (where[m["name"]], m.get("readOnly")) for m in container["volumeMounts"]}
    assert {"/venv": ("/venv", True), "/model": ("/model", True), "/usr": ("/usr", True)}.items() <= seen.items()
    assert seen["/dev/shm"] == (None, None), "the one place it may write to, of the pod's own"


def test_two_containers_of_a_pod_share_the_volumes_of_their_programs() -> None:
    config = _config(processes=(PROCESS,))
    pod = _pod(image="vllm-cpu:1")
    pod["spec"]["containers"] *= 2
    volumes = [v["name"] for v in for_real_kubelets(pod, config)["spec"]["volumes"]]
    assert sorted(set(volumes)) == sorted(volumes)


def test_templates_in_lists_are_found_as_well() -> None:
    template: Json = {"spec": {"containers": [{"name": "c", "image": "vllm/x", "resources": {"limits": {"cpu": "8"}}}]}}
    job: Json = {"name": "a", "template": {"spec": {"template": template}}}
    job_set: Json = {"kind": "JobSet", "spec": {"replicatedJobs": [job]}}
    ray: Json = {"kind": "RayCluster", "spec": {"workerGroupSpecs": [{"groupName": "gpus", "template": template}]}}
    assert images_in([job_set]) == images_in([ray]) == ["vllm/x"]
    member = for_real_kubelets(job_set, TENTH)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    worker = for_real_kubelets(ray, TENTH)["spec"]["workerGroupSpecs"][0]["template"]
    for made in (member, worker):
        (container,) = made["spec"]["containers"]
        assert (container["imagePullPolicy"], container["resources"]) == ("Never", {"limits": {}})


def test_what_is_no_template_or_no_number_is_left_to_the_api_server() -> None:
    other: Json = {"kind": "ExternalSecret", "spec": {"template": "a text", "data": [{"template": ["x"]}, 3]}}
    assert for_real_kubelets(other, TENTH) == other
    pod = _pod()
    pod["spec"]["terminationGracePeriodSeconds"] = "30"
    assert for_real_kubelets(pod, TENTH)["spec"]["terminationGracePeriodSeconds"] == "30"
