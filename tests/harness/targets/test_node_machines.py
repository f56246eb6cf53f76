"""What a machine of namespaces is made of, as far as it can be said without making one."""

from __future__ import annotations

import asyncio
import json
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fakes.config import PoolConfig
from fakes.nodes.machine import Machine
from harness.errors import TargetError
from harness.stack.catalogue import NODE
from harness.stack.certificates import Authority
from harness.targets.node import cgroups, machines, network
from harness.targets.node.api_door import ApiDoor
from harness.targets.node.credentials import NEW_NAMES, issue_credentials, names_of, place_credentials
from harness.targets.node.keeper import clean
from harness.targets.node.machine_init import RUN
from harness.targets.node.machines import Ground, NamespaceMachines
from harness.targets.node.programs import (
    SYSCTLS,
    Setting,
    containerd_config,
    files,
    init_config,
    kubelet_config,
    pod_subnet,
)

POOL = PoolConfig("spot", "spot", gpus=2, nodes=1, stock=1)


def _setting(time_scale: float = 1.0, *, provisioned: bool = False, pool: PoolConfig = POOL) -> Setting:
    return Setting(
        machine=Machine("spot-1", pool, 1, provisioned),
        programs={component.name: f"/opt/{component.name}" for component in NODE},
        cgroup="gpu-harness-x-spot-1",
        time_scale=time_scale,
        kubeconfig=RUN / "kubeconfig",
        authority=RUN / "pki/ca.crt",
        logs=Path("/logs"),
    )


def test_what_the_kubelet_counts_is_divided_by_the_time_scale() -> None:
    assert kubelet_config(_setting())["nodeStatusUpdateFrequency"] == "10.000s"
    assert kubelet_config(_setting())["nodeLeaseDurationSeconds"] == 40
    fast = kubelet_config(_setting(10))
    assert (fast["nodeStatusUpdateFrequency"], fast["nodeLeaseDurationSeconds"]) == ("1.000s", 4)
    assert kubelet_config(_setting(100))["nodeLeaseDurationSeconds"] == 1


def test_a_node_says_of_itself_what_its_pool_is_and_nothing_that_it_may_not() -> None:
    argv = init_config(_setting(), Path("/state"))["programs"]["kubelet"]["argv"]
    (labels,) = [word for word in argv if word.startswith("--node-labels=")]
    assert "karpenter.sh/capacity-type=spot" in labels
    assert "nvidia.com/gpu.count=2" in labels
    assert "kubernetes.io/os" not in labels, "NodeRestriction refuses a node that labels itself so"
    assert not any("register-with-taints" in word for word in argv)
    provisioned = init_config(_setting(provisioned=True), Path("/state"))["programs"]["kubelet"]["argv"]
    assert "--register-with-taints=karpenter.sh/unregistered=:NoExecute" in provisioned


def test_a_machine_without_gpus_has_no_device_plugin() -> None:
    assert set(init_config(_setting(), Path("/s"))["programs"]) == {"containerd", "kubelet", "device-plugin"}
    bare = _setting(pool=PoolConfig("cpu", "on-demand", gpus=0))
    assert set(init_config(bare, Path("/s"))["programs"]) == {"containerd", "kubelet"}


def test_the_files_of_a_machine_can_be_read() -> None:
    written = files(_setting())
    assert json.loads(written["kubelet.json"])["kind"] == "KubeletConfiguration"
    assert json.loads(written["cni/10-pods.conflist"])["plugins"][0]["ipam"]["ranges"] == [
        [{"subnet": "10.244.1.0/24"}]
    ]
    runtime = tomllib.loads(containerd_config(_setting()))["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["containerd"]["runtimes"]["runc"]["options"]["BinaryName"] == "/opt/runc"
    assert runtime["cni"]["bin_dirs"] == ["/opt"]


def test_nothing_is_set_for_the_whole_host() -> None:
    config = init_config(_setting(), Path("/state"))
    assert config["sysctls"] == SYSCTLS
    assert kubelet_config(_setting())["makeIPTablesUtilChains"] is False


def test_machines_have_subnets_of_their_own() -> None:
    subnets = {pod_subnet(Machine(f"n-{i}", POOL, i, False)) for i in range(1, 600)}
    assert len(subnets) == 599


def test_a_machine_short_of_memory_has_a_threshold_above_all_that_there_is() -> None:
    well, short = kubelet_config(_setting()), kubelet_config(_setting(), short_of_memory=True)
    assert (well["evictionHard"]["memory.available"], short["evictionHard"]["memory.available"]) == ("100Mi", "99%")
    assert {**short, "evictionHard": well["evictionHard"]} == well


def test_every_node_has_its_own_credentials_and_only_those(tmp_path: Path) -> None:
    folder, state = tmp_path / "credentials", tmp_path / "spot-1"
    state.mkdir()
    names = names_of([POOL])
    assert len(names) == 1 + NEW_NAMES
    issue_credentials(Authority("cluster-ca", tmp_path), folder, names[:2])
    place_credentials(folder, "spot-1", state, "https://10.0.0.2:1")
    assert sorted(p.name for p in (state / "pki").iterdir()) == ["ca.crt", "client.crt", "client.key"]
    assert (state / "pki/client.key").stat().st_mode & 0o077 == 0
    with pytest.raises(TargetError, match="spot-99"):
        place_credentials(folder, "spot-99", state, "https://10.0.0.2:1")


def _first_version(root: Path) -> None:
    for name in ("cpuset", "freezer", "memory", "unified"):
        (root / name).mkdir(parents=True)
        (root / name / "cgroup.procs").touch()
    for file in ("cpuset.cpus", "cpuset.mems"):
        (root / "cpuset" / file).write_text("0-1\n")


def test_cgroups_of_the_first_version_are_made_in_each_hierarchy(tmp_path: Path) -> None:
    _first_version(tmp_path)
    assert [p.name for p in cgroups.hierarchies(tmp_path)] == ["cpuset", "freezer", "memory"]
    cgroups.make("gpu-harness-x-a", tmp_path)
    assert (tmp_path / "cpuset/gpu-harness-x-a/cpuset.cpus").read_text() == "0-1\n"
    cgroups.take_in("gpu-harness-x-a", 17, tmp_path)
    assert (tmp_path / "freezer/gpu-harness-x-a/cgroup.procs").read_text() == "17"


def test_cgroups_of_the_second_version_are_made_once(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").touch()
    (tmp_path / "system.slice").mkdir()
    assert cgroups.hierarchies(tmp_path) == [tmp_path]
    cgroups.make("gpu-harness-x-a", tmp_path)
    cgroups.take_in("gpu-harness-x-a", 17, tmp_path)
    assert (tmp_path / "gpu-harness-x-a/machine/cgroup.procs").read_text() == "17"


def test_only_cgroups_with_our_name_are_removed(tmp_path: Path) -> None:
    _first_version(tmp_path)
    for name in ("memory/gpu-harness-x-a/kubepods/pod1", "unified/gpu-harness-x-a", "memory/gpu-harness-y-a"):
        (tmp_path / name).mkdir(parents=True)
    assert cgroups.remove("gpu-harness-x", tmp_path) == []
    assert [p.name for p in tmp_path.rglob("gpu-harness-*")] == ["gpu-harness-y-a"]


def test_several_may_remove_the_same_cgroups_at_once(tmp_path: Path) -> None:
    """The machines' own end and the keeper both do, and neither must stumble over what the other has removed."""
    with ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            for number in range(60):
                (tmp_path / f"memory/gpu-harness-x-a/kubepods/pod{number}/c").mkdir(parents=True)
            work = [threads.submit(cgroups.remove, "gpu-harness-x", tmp_path) for _ in range(4)]
            assert [done.result() for done in work] == [[]] * 4


def test_the_keeper_removes_the_folder_whatever_becomes_of_the_cgroups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(prefix: str) -> list[Path]:
        raise OSError(f"{prefix} cannot be looked at")

    monkeypatch.setattr(cgroups, "remove", refuse)
    (tmp_path / "machines").mkdir()
    with pytest.raises(OSError, match="cannot be looked at"):
        clean("gpu-harness-x", tmp_path / "machines")
    assert not (tmp_path / "machines").exists()


async def test_the_disk_of_a_machine_that_is_gone_waits_for_the_keeper(tmp_path: Path) -> None:
    """To delete its thousands of files in the middle of a run would keep the machine busy."""
    state = tmp_path / "machines"
    (state / "spot-1" / "containerd").mkdir(parents=True)
    ground = Ground(state, tmp_path, "gpu-harness-x", tmp_path, "https://127.0.0.1:1", {}, 1.0)
    machines = NamespaceMachines(ground, ApiDoor(0, 1))
    await machines.remove("spot-1")
    await machines.remove("spot-1")  # nothing of it is left
    assert not (state / "spot-1").exists()
    assert [path.name for path in state.glob("*/*")] == ["containerd"]
    assert clean("gpu-harness-nobody", state) == [] and not state.exists()


def test_the_keeper_removes_the_folder_too(tmp_path: Path) -> None:
    (tmp_path / "machines/spot-1").mkdir(parents=True)
    assert clean("gpu-harness-no-such-run", tmp_path / "machines") == []
    assert not (tmp_path / "machines").exists()
    assert clean("gpu-harness-no-such-run", tmp_path / "machines") == [], "twice is as good as once"


def _machines(tmp_path: Path) -> NamespaceMachines:
    state, logs = tmp_path / "state", tmp_path / "logs"
    state.mkdir()
    logs.mkdir()
    ground = Ground(state, logs, "gpu-harness-x", tmp_path, "https://x", _setting().programs, 1.0)
    return NamespaceMachines(ground, ApiDoor(0, 1))


async def test_a_machine_that_stands_still_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "OBEYED_S", 0.05)
    standing = _machines(tmp_path)
    (tmp_path / "state" / "spot-1").mkdir()
    standing._known["spot-1"] = _setting().machine
    standing._running["spot-1"] = None  # type: ignore[assignment]  # only asked whether it is there
    heard = asyncio.Event()

    async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await heard.wait()
        writer.close()

    server = await asyncio.start_unix_server(says_nothing, tmp_path / "state" / "spot-1" / "orders")
    with pytest.raises(TargetError, match="spot-1 did not do stop within"):
        await standing.restart_kubelet("spot-1")
    heard.set()
    server.close()


async def test_a_machine_that_does_not_boot_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "UP_WITHIN_S", 0.2)
    monkeypatch.setattr(machines, "UNSHARE", ("sh", "-c", f"echo $$ >{tmp_path}/pid; exec sleep 60"))
    booting = _machines(tmp_path)
    (tmp_path / "state" / "spot-1").mkdir()
    with pytest.raises(TargetError, match="spot-1 did not boot within"):
        await booting._boot(_setting().machine)
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


async def test_a_machine_that_is_half_up_has_no_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = _machines(tmp_path)
    half._known["spot-1"] = _setting().machine
    shell = await asyncio.create_subprocess_exec("sleep", "60")
    removed: list[str] = []

    async def boot(machine: Machine) -> machines._Running:
        return machines._Running(machine, shell, shell.pid)

    async def no_cable(machine: Machine, pid: int) -> None:
        raise TargetError("no cable")

    monkeypatch.setattr(half, "_boot", boot)
    monkeypatch.setattr(network, "plug_in", no_cable)
    monkeypatch.setattr(cgroups, "make", lambda name: None)
    monkeypatch.setattr(cgroups, "take_in", lambda name, pid: None)
    monkeypatch.setattr(cgroups, "remove", removed.append)
    for _ in range(2):  # who tries again is not told that all is well
        with pytest.raises(TargetError, match="no cable"):
            await half.power_on("spot-1")
    assert (shell.returncode, removed) == (-9, ["gpu-harness-x-spot-1"] * 2)
