"""A fault that would change nothing is refused, or not seen by what happens anyway."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from faults_ground import make_ground, make_kube
from pydantic import ValidationError

from harness.errors import BadInput
from harness.faults.fault import Fault, Strike
from harness.faults.pick import FleetNode
from harness.faults.registry import FAULTS
from harness.faults.scene import Scene
from harness.kube.port import NODE_CLAIM
from harness.plan.load_faults import with_load_faults
from harness.plan.plan import plan_profile
from harness.run.playing import NoTargets, Play, find_targets
from harness.spec.loadprofile import load_profile

ROOT = Path(__file__).resolve().parents[3]
PRODUCT = "nvidia.com/gpu.product"


def fault(name: str, **arguments: Any) -> Fault:
    return FAULTS[name].model_validate({"after_s": 0, "hold_s": 60, **arguments})


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("link_trouble", {"link": "pods"}),
        ("link_trouble", {"link": "pods", "latency_ms": -5.0}),
        ("instance_trouble", {"pool": "spot", "how": "slow_boot", "factor": 1.0}),
    ],
)
def test_arguments_that_say_to_do_nothing_are_refused(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        fault(name, **arguments)


def test_a_pool_that_has_the_wrong_gpu_already_shows_nothing() -> None:
    nodes = [FleetNode("a", {"karpenter.sh/nodepool": "spot", PRODUCT: "A10G"}, 4)]
    scene = Scene(nodes, pools=("spot", "other"))
    wrong = {"how": "wrong_gpu", "gpu_product": "A10G"}
    with pytest.raises(BadInput, match="pool spot has A10G already"):
        fault("instance_trouble", pool="spot", **wrong).pick(scene, Random(1))
    assert fault("instance_trouble", pool="other", **wrong).pick(scene, Random(1)) == ("other",)
    late = fault("instance_trouble", pool="spot", how="slow_boot", gpu_product="A10G")
    assert late.pick(scene, Random(1)) == ("spot",)


@pytest.mark.parametrize(
    ("arguments", "said", "ours"),
    [
        ({"why": "quota"}, "VcpuLimitExceeded: 3 of pool spot exist", True),
        ({"why": "quota"}, "InsufficientInstanceCapacity: zone zone-a has no p5 left", False),
        ({"why": "zone", "zone": "zone-a"}, "InsufficientInstanceCapacity: zone zone-a has no p5 left", True),
        ({"why": "zone", "zone": "zone-a"}, "InsufficientInstanceCapacity: zone zone-b has no p5 left", False),
        ({"why": "throttled"}, "VcpuLimitExceeded: 3 of pool spot exist", False),
        ({"why": "error"}, "what a provider of others says in its own words", True),
    ],
)
async def test_a_refusal_with_another_cause_is_none_of_the_faults(
    tmp_path: Path, arguments: dict[str, Any], said: str, ours: bool
) -> None:
    kube = make_kube()
    meta = {"name": "spot-1", "labels": {"karpenter.sh/nodepool": "spot"}}
    await kube.create(NODE_CLAIM, {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "spec": {}})
    launched = {"type": "Launched", "status": "False", "reason": "LaunchFailed", "message": said}
    await kube.patch(NODE_CLAIM, "spot-1", {"status": {"conditions": [launched]}}, subresource="status")
    it = fault("capacity_refused", pool="spot", **arguments)
    async with make_ground(tmp_path, kube) as ground:
        assert bool(await it.signs(Strike(it, ground, "capacity_refused-1", ("spot",)))) is ours


@pytest.mark.parametrize(
    ("name", "arguments"), [("client_hang_ups", {"ratio": 1e-9}), ("flash_crowd", {"added_per_s": 1e-9})]
)
def test_a_fault_of_the_load_that_no_request_hears_of_is_refused(name: str, arguments: dict[str, Any]) -> None:
    schedule = plan_profile(load_profile(ROOT / "loadprofiles" / "calm-chat.yaml"), 1, 10.0).schedule
    with pytest.raises(BadInput, match=f"{name}-1 changes nothing of the load"):
        with_load_faults(schedule, [(f"{name}-1", fault(name, **arguments))], 10.0, 1)


async def test_neither_a_fault_without_a_target_nor_one_that_the_target_has_not_begins(tmp_path: Path) -> None:
    """The last look before anything is touched, also for plain ``chaos run``, which asks no other."""
    nothing = FAULTS["apply_objects"].model_validate({"after_s": 0, "manifest": "empty.yaml"})
    async with make_ground(tmp_path, make_kube()) as ground:
        with pytest.raises(NoTargets) as refused:
            await find_targets(Play(nothing, "apply_objects-1", 1, ()), ground)
        assert "picked nothing" in str(refused.value.cause)
        restart = FAULTS["gateway_restart"].model_validate({"after_s": 0, "down_s": 5})
        with pytest.raises(NoTargets) as refused:
            await find_targets(Play(restart, "gateway_restart-1", 1, ()), replace(ground, target="kubeconfig"))
        assert "does not support gateway_restart" in str(refused.value.cause)
