"""An image that is not there: how a kubelet says so, and what stands in the image's place."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults_ground import add_namespace, make_ground, make_kube

from harness.faults.catalogue.rollout import BadImage, with_tag
from harness.faults.fault import Strike
from harness.kube.port import POD


@pytest.mark.parametrize(
    ("reason", "image", "seen"),
    [
        ("ErrImagePull", "vllm:missing", True),
        ("ImagePullBackOff", "vllm:missing", True),
        ("ErrImageNeverPull", "vllm:missing", True),  # imagePullPolicy: Never, as for images loaded onto kind's nodes
        ("ContainerCreating", "vllm:missing", False),
        ("ErrImagePull", "vllm:v1", False),
    ],
)
async def test_a_new_pod_that_waits_for_it_is_seen(tmp_path: Path, reason: str, image: str, seen: bool) -> None:
    kube = make_kube()
    await add_namespace(kube, "inference")
    meta = {"name": "llm-1", "namespace": "inference", "labels": {"app": "llm"}}
    waits = [{"name": "vllm", "image": image, "state": {"waiting": {"reason": reason}}}]
    containers = [{"name": "vllm", "image": image}]
    await kube.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers}})
    await kube.patch(POD, "llm-1", {"status": {"containerStatuses": waits}}, "inference", subresource="status")
    fault = BadImage.model_validate({"after_s": 0, "deployment": "llm", "hold_s": 60})
    async with make_ground(tmp_path, kube) as ground:
        assert bool(await fault.signs(Strike(fault, ground, "bad_image-1", ("Deployment/llm",), {}))) == seen


@pytest.mark.parametrize(
    ("image", "bad"),
    [
        ("vllm/vllm-openai:v0.32.0", "vllm/vllm-openai:missing"),
        ("vllm", "vllm:missing"),
        ("registry.local:5000/vllm", "registry.local:5000/vllm:missing"),
        ("registry.local:5000/vllm@sha256:0123", "registry.local:5000/vllm:missing"),
        ("a/vllm:v1@sha256:0123", "a/vllm:missing"),
    ],
)
def test_only_the_tag_or_the_digest_is_another(image: str, bad: str) -> None:
    assert with_tag(image, "missing") == bad
