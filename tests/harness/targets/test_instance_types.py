"""Karpenter is offered what the world's pools have, and nothing that may not be ordered."""

from __future__ import annotations

import json

from fakes.config import PoolConfig
from harness.targets.controlplane.instance_types import instance_types


def test_pools_of_one_type_are_its_offerings() -> None:
    pools = (
        PoolConfig("spot", "spot", gpus=8, cpu=192, memory_gib=2048, instance_type="p5", price_per_hour=22.0),
        PoolConfig("od", "on-demand", gpus=8, instance_type="p5", zone="zone-b", price_per_hour=55.0),
        PoolConfig("fixed", "on-demand", instance_type="m7", provision=False),
    )
    (found,) = json.loads(instance_types(pools))
    assert (found["name"], found["resources"]["nvidia.com/gpu"], found["resources"]["cpu"]) == ("p5", "8", "192")
    assert [offering["Price"] for offering in found["offerings"]] == [22.0, 55.0]
    requirements = {r["key"]: r["values"] for r in found["offerings"][1]["Requirements"]}
    assert requirements["karpenter.sh/capacity-type"] == ["on-demand"]
    assert requirements["topology.kubernetes.io/zone"] == ["zone-b"]
    assert requirements["gpu-harness.dev/pool"] == ["od"]
    assert requirements["nvidia.com/gpu.count"] == ["8"]
