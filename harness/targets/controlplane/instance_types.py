"""The pools of a world as instance types of Karpenter's kwok provider.

Its format is that of ``InstanceTypeOptions`` (sigs.k8s.io/karpenter v1.15.0, kwok/cloudprovider). Every offering is
available there: a stock that runs out cannot be said.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from fakes.config import PoolConfig
from fakes.nodes.labels import CAPACITY_TYPE, OFFERING, pool_labels
from fakes.nodes.node_status import EVICTION_RESERVE_KI

ZONE = "topology.kubernetes.io/zone"


def instance_types(pools: Iterable[PoolConfig]) -> str:
    """One type for each name among the pools that may be provisioned from, with an offering for each pool."""
    types: dict[str, dict[str, Any]] = {}
    for pool in pools:
        if not pool.provision:
            continue
        found = types.setdefault(pool.instance_type, _type(pool))
        found["offerings"].append(
            {"Price": pool.price_per_hour, "Available": True, "Requirements": list(_requirements(pool))}
        )
    return json.dumps(list(types.values()), indent=1)


def _type(pool: PoolConfig) -> dict[str, Any]:
    resources = {
        "cpu": str(pool.cpu),
        # Without what the kubelet keeps back, or Karpenter would count on memory that the node never offers.
        "memory": f"{pool.memory_gib * 1024 * 1024 - EVICTION_RESERVE_KI}Ki",
        "ephemeral-storage": "500Gi",
    } | ({"nvidia.com/gpu": str(pool.gpus)} if pool.gpus else {})
    return {
        "name": pool.instance_type,
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": resources,
        "offerings": [],
    }


def _requirements(pool: PoolConfig) -> Iterable[dict[str, Any]]:
    """What the Node's labels will be; the rest of them come from the NodePool and from Karpenter."""
    labels = pool_labels(pool)
    for key in (CAPACITY_TYPE, ZONE, OFFERING, *(key for key in labels if key.startswith("nvidia.com/"))):
        yield {"key": key, "operator": "In", "values": [labels[key]]}
