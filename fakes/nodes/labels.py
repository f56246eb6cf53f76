"""The labels of a node, from the pool its instance belongs to."""

from __future__ import annotations

from fakes.config import PoolConfig

HOSTNAME = "kubernetes.io/hostname"
NODEPOOL = "karpenter.sh/nodepool"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
OFFERING = "gpu-harness.dev/pool"
"""Which of the cloud's pools the machine is from; a NodePool may order from several."""
GPU_RESOURCE = "nvidia.com/gpu"


def pool_labels(pool: PoolConfig) -> dict[str, str]:
    """What all nodes of a pool have in common: the template's labels of its NodePool."""
    common = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": pool.instance_type,
        "topology.kubernetes.io/zone": pool.zone,
        CAPACITY_TYPE: pool.capacity_type,
        NODEPOOL: pool.node_pool,
        OFFERING: pool.name,
    }
    if not pool.gpus or pool.dra:  # feature discovery comes with the device plugin, and labels nodes with GPUs only
        return common
    return common | {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": pool.gpu_product,
        "nvidia.com/gpu.count": str(pool.gpus),
    }


def node_labels(pool: PoolConfig, name: str) -> dict[str, str]:
    return {HOSTNAME: name, **pool_labels(pool)}


def instance_id(node: str) -> str:
    return f"i-{node}"


def provider_id(pool: PoolConfig, node: str) -> str:
    return f"fake://{pool.zone}/{instance_id(node)}"


def instance_of(provider: str) -> str:
    """The instance's id in a ``spec.providerID``; empty when it names none of ours. Karpenter's kwok provider writes
    the node's name there; kind's nodes are named after their containers, as ``kind://docker/CLUSTER/NAME``."""
    scheme, _, rest = provider.partition("://")
    if scheme == "kind":
        return instance_id(rest.rpartition("/")[2])
    if scheme == "kwok":
        return instance_id(rest)
    return rest.rpartition("/")[2] if scheme == "fake" else ""
