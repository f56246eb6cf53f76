from __future__ import annotations

from pathlib import Path

import yaml

from fakes.config import PlantedBug, PoolConfig, WorldConfig
from harness.targets.kind.cluster_file import cluster_file, names_by_pool, workers_of
from harness.targets.kind.target import planned_kind_fleet

POOLS = (
    PoolConfig("spot", "spot", gpus=2, nodes=1, stock=1, zone="zone-a"),
    PoolConfig("on-demand", "on-demand", gpus=4, nodes=1, stock=3, zone="zone-b"),
)


def config(time_scale: float = 1.0, **more: object) -> WorldConfig:
    return WorldConfig(seed=1, time_scale=time_scale, pools=POOLS, **more)  # type: ignore[arg-type]  # more of its fields


def written(world: WorldConfig) -> dict[str, object]:
    found: dict[str, object] = yaml.safe_load(cluster_file(world, "lab", Path("/mark")))
    return found


def test_there_is_a_container_for_each_instance_of_the_stock_named_as_kind_names_them() -> None:
    found = [(worker.name, worker.pool.name, worker.parked) for worker in workers_of(config(), "lab")]
    assert found == [
        ("lab-worker", "spot", False),
        ("lab-worker2", "on-demand", False),
        ("lab-worker3", "on-demand", True),
        ("lab-worker4", "on-demand", True),
    ]
    assert names_by_pool(config(), "lab") == {
        "spot": ["lab-worker"],
        "on-demand": ["lab-worker2", "lab-worker3", "lab-worker4"],
    }


def test_the_plan_knows_the_nodes_of_the_start_by_their_containers() -> None:
    fleet = planned_kind_fleet(config())
    assert [(node.name, node.gpus) for node in fleet] == [("gpu-harness-worker", 2), ("gpu-harness-worker2", 4)]
    assert fleet[0].labels["karpenter.sh/capacity-type"] == "spot"


def test_nodes_are_labelled_by_their_pools_and_ours_bear_a_mark() -> None:
    nodes = written(config())["nodes"]
    assert isinstance(nodes, list)
    control_plane, first, second, *_ = nodes
    for node in nodes:
        assert node["extraMounts"] == [{"hostPath": "/mark", "containerPath": "/gpu-harness", "readOnly": True}]
    assert [m["containerPort"] for m in control_plane["extraPortMappings"]] == [30080, 30081]
    assert first["labels"]["karpenter.sh/capacity-type"] == "spot"
    assert second["labels"]["topology.kubernetes.io/zone"] == "zone-b"
    assert second["labels"]["nvidia.com/gpu.count"] == "4"
    # A kubelet says these of itself, and kubeadm's node authorizer would not let it say others of that kind.
    assert not {"kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os"} & set(first["labels"])


def patches(world: WorldConfig) -> dict[str, dict[str, object]]:
    texts = written(world)["kubeadmConfigPatches"]
    assert isinstance(texts, list)
    return {patch["kind"]: patch for patch in map(yaml.safe_load, texts)}


def flags(patch: dict[str, object], part: str) -> dict[str, str]:
    section = patch[part]
    assert isinstance(section, dict)
    return {argument["name"]: argument["value"] for argument in section["extraArgs"]}


def test_in_real_time_nothing_is_said_about_time() -> None:
    found = patches(config())
    assert set(found) == {"ClusterConfiguration"}
    manager = flags(found["ClusterConfiguration"], "controllerManager")
    assert "node-monitor-grace-period" not in manager and manager["enable-hostpath-provisioner"] == "true"


def test_a_time_scale_shortens_what_kubelets_and_controllers_count() -> None:
    found = patches(config(5.0))
    kubelet = found["KubeletConfiguration"]
    assert (kubelet["nodeStatusUpdateFrequency"], kubelet["nodeLeaseDurationSeconds"]) == ("2s", 8)
    manager = flags(found["ClusterConfiguration"], "controllerManager")
    assert (manager["node-monitor-period"], manager["node-monitor-grace-period"]) == ("1s", "10s")
    assert flags(found["ClusterConfiguration"], "apiServer")["default-not-ready-toleration-seconds"] == "60"


def test_a_scheduler_that_binds_gangs_one_by_one_is_one_without_the_gate() -> None:
    bug = frozenset({PlantedBug.GANG_BOUND_ONE_BY_ONE})
    assert "feature-gates" in flags(patches(config())["ClusterConfiguration"], "scheduler")
    assert "feature-gates" not in flags(patches(config(planted_bugs=bug))["ClusterConfiguration"], "scheduler")
