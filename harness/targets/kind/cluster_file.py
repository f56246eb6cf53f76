"""The file from which ``kind create cluster`` makes a world: a node container for each instance that its cloud has."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import yaml

from fakes.config import PlantedBug, PoolConfig, WorldConfig
from fakes.nodes.labels import HOSTNAME, pool_labels
from harness.kube.port import Json
from harness.stack.controller_periods import NODES_PER_S, PERIODS_S

OURS = "/gpu-harness"
"""Where each node of ours has a mount; by it our clusters are told from others of the same name."""
GATEWAY_PORT, CONTROL_PORT, METRICS_PORT = 30080, 30081, 30443
"""On the control-plane node. The first two are reached from outside, through ports that Docker publishes."""
_KUBELET_SETS = (HOSTNAME, "kubernetes.io/arch", "kubernetes.io/os")
LEASE_S, STATUS_S, RESYNC_S = 40.0, 10.0, 300.0
"""nodeLeaseDurationSeconds, nodeStatusUpdateFrequency and nodeStatusReportFrequency of kubelet 1.37."""
TOLERATION_S = 300
"""What the API server lets a pod tolerate a node that is not Ready, or not reached, where the pod says nothing."""
_TOLERATIONS = tuple(f"default-{why}-toleration-seconds" for why in ("not-ready", "unreachable"))
TIMED_FLAGS = frozenset((*_TOLERATIONS, *PERIODS_S, *NODES_PER_S))
"""Those of API server and controller manager that follow the time scale."""


@dataclass(frozen=True, slots=True)
class Worker:
    """``name`` is that of the container and of the Node. ``parked``: it is stock, and has no power at the start."""

    name: str
    pool: PoolConfig
    parked: bool


def control_plane_name(cluster: str) -> str:
    return f"{cluster}-control-plane"


def worker_names(cluster: str, count: int) -> list[str]:
    """As kind names them: by their order in the file, the second with a 2."""
    return [f"{cluster}-worker{number if number > 1 else ''}" for number in range(1, count + 1)]


def workers_of(config: WorldConfig, cluster: str) -> tuple[Worker, ...]:
    """A pool's after those of the pools before it."""
    machines = [(p, index >= p.nodes) for p in config.pools for index in range(max(p.stock, p.nodes))]
    names = worker_names(cluster, len(machines))
    return tuple(Worker(name, pool, parked) for name, (pool, parked) in zip(names, machines, strict=True))


def names_by_pool(config: WorldConfig, cluster: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {pool.name: [] for pool in config.pools}
    for worker in workers_of(config, cluster):
        found[worker.pool.name].append(worker.name)
    return found


def cluster_file(config: WorldConfig, cluster: str, mark: Path) -> str:
    """``mark`` is a folder of ours, mounted into every node: half a cluster may lack any of them."""
    marked = [{"hostPath": str(mark), "containerPath": OURS, "readOnly": True}]
    control_plane: Json = {
        "role": "control-plane",
        "extraMounts": marked,
        # Without a host port kind takes a free one.
        "extraPortMappings": [
            {"containerPort": port, "listenAddress": "127.0.0.1", "protocol": "TCP"}
            for port in (GATEWAY_PORT, CONTROL_PORT)
        ],
    }
    workers = [
        {"role": "worker", "labels": worker_labels(worker.pool), "extraMounts": deepcopy(marked)}
        for worker in workers_of(config, cluster)
    ]
    whole: Json = {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": cluster,
        "kubeadmConfigPatches": [
            yaml.safe_dump(patch, sort_keys=False) for patch in (_kubelets(config), _control_plane(config)) if patch
        ],
        "nodes": [control_plane, *workers],
    }
    return str(yaml.safe_dump(whole, sort_keys=False))


def worker_labels(pool: PoolConfig) -> dict[str, str]:
    """Those of the pool but for what a kubelet says of itself."""
    return {key: value for key, value in pool_labels(pool).items() if key not in _KUBELET_SETS}


def kubelet_times(time_scale: float) -> Json:
    """What a KubeletConfiguration says of time."""
    return {
        "nodeStatusUpdateFrequency": _go(max(1.0, STATUS_S / time_scale)),
        "nodeStatusReportFrequency": _go(max(1.0, RESYNC_S / time_scale)),
        # The kubelet renews four times in this time; whole seconds.
        "nodeLeaseDurationSeconds": max(4, round(LEASE_S / time_scale)),
    }


def timed_flags(time_scale: float) -> dict[str, dict[str, str]]:
    """By program. In real time there are none: what it does by itself is right."""
    if time_scale == 1:
        return {"kube-apiserver": {}, "kube-controller-manager": {}}
    toleration = str(max(1, round(TOLERATION_S / time_scale)))
    manager = {name: _go(seconds / time_scale) for name, seconds in PERIODS_S.items()}
    manager |= {name: f"{rate * time_scale:.3f}" for name, rate in NODES_PER_S.items()}
    return {"kube-apiserver": dict.fromkeys(_TOLERATIONS, toleration), "kube-controller-manager": manager}


def without_time(file: str) -> Json:
    """A cluster's settings (all but its nodes) without what follows the time scale, to be compared with others."""
    read: Json = yaml.safe_load(file)
    patches: list[Json] = []
    for patch in map(yaml.safe_load, read["kubeadmConfigPatches"]):
        if patch["kind"] == "KubeletConfiguration":
            continue
        for part in ("apiServer", "controllerManager"):
            arguments = patch[part]["extraArgs"]
            patch[part]["extraArgs"] = [each for each in arguments if each["name"] not in TIMED_FLAGS]
        patches.append(patch)
    return {key: value for key, value in read.items() if key != "nodes"} | {"kubeadmConfigPatches": patches}


def _kubelets(config: WorldConfig) -> Json:
    return {} if config.time_scale == 1 else {"kind": "KubeletConfiguration"} | kubelet_times(config.time_scale)


def _control_plane(config: WorldConfig) -> Json:
    """kubeadm replaces lists as a whole, so kind's own arguments are among these."""
    timed, gangs = timed_flags(config.time_scale), {"feature-gates": "GenericWorkload=true"}
    api = {"runtime-config": "scheduling.k8s.io/v1beta1=true", **gangs}
    manager = {"enable-hostpath-provisioner": "true", "kube-api-qps": "300", "kube-api-burst": "600", **gangs}
    scheduler = {} if PlantedBug.GANG_BOUND_ONE_BY_ONE in config.planted_bugs else gangs
    return {
        "kind": "ClusterConfiguration",
        "etcd": {"local": {"extraArgs": _arguments({"unsafe-no-fsync": "true"})}},  # the data is thrown away
        "apiServer": {"extraArgs": _arguments(api | timed["kube-apiserver"])},
        "controllerManager": {"extraArgs": _arguments(manager | timed["kube-controller-manager"])},
        "scheduler": {"extraArgs": _arguments(scheduler)},
    }


def _arguments(flags: Mapping[str, str]) -> list[Json]:
    """As kubeadm's v1beta4 has them, which kind writes from Kubernetes 1.36 on."""
    return [{"name": name, "value": value} for name, value in flags.items()]


def _go(seconds: float) -> str:
    """A duration as Go reads it."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"
