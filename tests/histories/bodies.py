"""Bodies of the objects of a story, as the API serves them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

UNSCHEDULABLE = {
    "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
    "message": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
}  # fmt: skip


def node_body(ready: bool, gpus: int, metadata: Json | None = None) -> Json:
    taints = [] if ready else [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    allocatable = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    has = dict(allocatable)
    return {
        "metadata": metadata or {},
        "spec": {"taints": taints},
        "status": {
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "allocatable": allocatable,
            "capacity": has,
        },
    }


def pod_body(app: str, group: str | None, grace_s: int, pre_stop_s: int) -> Json:
    owner = {"uid": "uid-replicaset-llm-1" if app == "llm" else f"uid-{app}", "controller": True, "kind": "ReplicaSet"}
    container = {
        "name": "vllm",
        "image": "vllm/vllm-openai:v0.32.0",
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "lifecycle": {"preStop": {"sleep": {"seconds": pre_stop_s}}},
    }
    spec: Json = {"containers": [container], "terminationGracePeriodSeconds": grace_s}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return {
        "metadata": {"labels": {"app": app}, "ownerReferences": [owner]},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def running() -> Json:
    state = [{"name": "vllm", "state": {"running": {}}, "restartCount": 0}]
    conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]
    return {"phase": "Running", "containerStatuses": state, "conditions": conditions}


def serving() -> Json:
    status = running()
    status["conditions"] = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]
    return status


def slice_body(node: str, devices: int, tainted: tuple[int, ...] = ()) -> Json:
    """What a DRA driver says of a node's GPUs."""
    taint = {"key": "gpu.nvidia.com/unhealthy", "value": "xid-79", "effect": "NoExecute"}
    listed = [{"name": f"gpu-{n}", "taints": [taint] if n in tainted else []} for n in range(devices)]
    return {"spec": {"driver": "gpu.nvidia.com", "nodeName": node, "pool": {"name": node}, "devices": listed}}


def claim_body(node: str, pod: str, *devices: int, tolerations: tuple[Json, ...] = ()) -> Json:
    """A claim that was given devices of a node, for one pod."""
    results = [
        {"request": "gpu", "driver": "gpu.nvidia.com", "pool": node, "device": f"gpu-{n}"}
        | ({"tolerations": list(tolerations)} if tolerations else {})
        for n in devices
    ]
    reserved = [{"resource": "pods", "name": pod, "uid": f"uid-pod-{pod}"}]
    return {"status": {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}}
