"""How a node comes into being: registered, Ready, and only then with GPUs."""

from __future__ import annotations

import asyncio

import pytest
from node_bench import Bench, condition, now

from harness.kube.port import LEASE, NODE

pytestmark = pytest.mark.looptime

GPU = "nvidia.com/gpu"


async def test_a_provisioned_node_is_ready_before_it_has_gpus() -> None:
    async with Bench(provisioned=True).running() as bench:
        await bench.until(lambda: any(GPU in n["status"]["allocatable"] for _, n in bench.nodes_seen))
        registered = bench.nodes_seen[0][1]
        assert condition(registered, "Ready") == "False"
        assert {t["key"]: t["effect"] for t in registered["spec"]["taints"]} == {
            "karpenter.sh/unregistered": "NoExecute", "node.kubernetes.io/not-ready": "NoSchedule",
        }  # fmt: skip
        ready = next(t for t, n in bench.nodes_seen if condition(n, "Ready") == "True")
        assert ready == pytest.approx(8, abs=0.1)
        usable = next(t for t, n in bench.nodes_seen if GPU in n["status"]["allocatable"])
        assert usable == pytest.approx(30, abs=0.1)  # registered at 20, told at the next tick
        for t, node in bench.nodes_seen:
            expected = {GPU: "4"} if t >= usable else {}
            for what in ("capacity", "allocatable"):
                assert {k: v for k, v in node["status"][what].items() if k == GPU} == expected


async def test_an_initial_node_is_ready_with_its_gpus_at_once() -> None:
    async with Bench().running() as bench:
        await bench.until(lambda: bool(bench.nodes_seen))
        _, first = bench.nodes_seen[0]
        assert condition(first, "Ready") == "True"
        assert first["status"]["allocatable"][GPU] == "4"
        assert "taints" not in first["spec"]
        assert first["spec"]["providerID"] == "fake://zone-a/i-spot-1"


async def test_the_node_has_the_shape_of_a_real_one() -> None:
    async with Bench().running() as bench:
        await asyncio.sleep(1)
        node = await bench.kube.get(NODE, "spot-1")
    status = node["status"]
    resources = {"cpu", "ephemeral-storage", "hugepages-1Gi", "hugepages-2Mi", "memory", GPU, "pods"}
    assert set(status["capacity"]) == set(status["allocatable"]) == resources
    assert [c["type"] for c in status["conditions"]] == ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
    fields = {"type", "status", "lastHeartbeatTime", "lastTransitionTime", "reason", "message"}
    assert all(set(c) == fields for c in status["conditions"])
    assert status["conditions"][3]["reason"] == "KubeletReady"
    assert [a["type"] for a in status["addresses"]] == ["InternalIP", "Hostname"]
    assert set(status["nodeInfo"]) == {
        "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
        "kubeProxyVersion", "operatingSystem", "architecture",
    }  # fmt: skip
    labels = node["metadata"]["labels"]
    assert labels["karpenter.sh/capacity-type"] == "spot"
    assert (labels["nvidia.com/gpu.count"], labels["kubernetes.io/hostname"]) == ("4", "spot-1")


async def test_the_lease_is_the_heartbeat_and_the_status_hardly_moves() -> None:
    async with Bench().running() as bench:
        renewals = set()
        for _ in range(11):
            await asyncio.sleep(10)
            lease = await bench.kube.get(LEASE, "spot-1", "kube-node-lease")
            renewals.add(lease["spec"]["renewTime"])
        assert len(renewals) == 11
        node = await bench.kube.get(NODE, "spot-1")
        assert lease["spec"]["leaseDurationSeconds"] == 40
        assert lease["spec"]["holderIdentity"] == "spot-1"
        assert lease["metadata"]["ownerReferences"] == [
            {"apiVersion": "v1", "kind": "Node", "name": "spot-1", "uid": node["metadata"]["uid"]}
        ]
        assert len(bench.nodes_seen) <= 3


async def test_power_loss_while_booting() -> None:
    async with Bench(provisioned=True).running() as bench:
        await bench.until(lambda: now() > 5)
        bench.kubelet.kill()
        revision = bench.store.revision
        await asyncio.sleep(60)
        assert bench.store.revision == revision


async def test_what_an_agent_found_stands_in_the_status_until_it_says_that_it_is_over() -> None:
    async with Bench().running() as bench:
        await asyncio.sleep(1)
        bench.kubelet.find("AcceleratedHardwareReady", "False")
        await bench.until(lambda: condition(bench.nodes_seen[-1][1], "AcceleratedHardwareReady") == "False")
        assert condition(bench.nodes_seen[-1][1], "Ready") == "True"
        bench.kubelet.find("AcceleratedHardwareReady", "True")
        await bench.until(lambda: condition(bench.nodes_seen[-1][1], "AcceleratedHardwareReady") == "True")
