"""Pressure on a node: who goes first, how fast, and how long the condition stays."""

from __future__ import annotations

import asyncio

import pytest
from node_bench import Bench, condition, now

from fakes.nodes.eviction import choose
from harness.kube.port import POD, Json

pytestmark = pytest.mark.looptime

MEMORY = "MemoryPressure"


class Running:
    """The part of a pod's worker that is asked."""

    def __init__(self, name: str, *, used_mib: int, asked: str = "", priority: int = 0) -> None:
        requests = {"memory": asked} if asked else {}
        self.pod: Json = {
            "metadata": {"name": name, "annotations": {"gpu-harness.dev/memory-mib": str(used_mib)}},
            "spec": {"priority": priority, "containers": [{"name": "c", "resources": {"requests": requests}}]},
        }


def test_who_goes_first() -> None:
    """Above its request, then low priority, then the most above it; critical pods never."""
    pods = [
        Running("within", used_mib=500, asked="1Gi"),
        Running("above-a-little", used_mib=200, asked="100Mi"),
        Running("above-a-lot", used_mib=900, asked="100Mi"),
        Running("above-but-dear", used_mib=5000, priority=1000),
        Running("critical", used_mib=9000, priority=2_000_000_000),
    ]
    order: list[str] = []
    while (victim := choose(MEMORY, pods)) is not None:  # type: ignore[arg-type]  # only its pod is looked at
        order.append(victim.pod["metadata"]["name"])
        pods = [p for p in pods if p.pod is not victim.pod]
    assert order == ["above-a-lot", "above-a-little", "above-but-dear", "within"]


async def test_memory_pressure_takes_one_pod_a_look_until_it_is_gone_and_is_remembered() -> None:
    async with Bench().running() as bench:
        for name in ("a", "b", "c"):
            await bench.add_pod(name, gpus=0)
        for name in ("a", "b", "c"):
            await bench.until_ready(name)
        began = now()
        bench.kubelet.pressure(MEMORY, True, evictions=2)
        await bench.until(lambda: bench.phase("b") != "Running")
        ends = [bench.first(n, lambda pod: pod["status"]["phase"] != "Running" and "startTime" in pod["status"]
                            and pod["status"]["phase"] != "Pending") for n in ("a", "b")]  # fmt: skip
        assert ends[1] - ends[0] == pytest.approx(10, abs=0.5)
        assert bench.phase("c") == "Running"
        assert {c["type"] for c in bench.last("a")["status"]["conditions"]} >= {"DisruptionTarget"}
        node = bench.nodes.objects[("", "spot-1")]
        assert condition(node, MEMORY) == "True"
        await asyncio.sleep(250)
        assert condition(bench.nodes.objects[("", "spot-1")], MEMORY) == "True"
        await bench.until(lambda: condition(bench.nodes.objects[("", "spot-1")], MEMORY) == "False")
        assert now() - began <= 10 + 10 + 10 + 300 + 21
        reasons = [reason for reason, _ in await bench.events("spot-1")]
        assert {"EvictionThresholdMet", "NodeHasInsufficientMemory", "NodeHasSufficientMemory"} <= set(reasons)


async def test_under_disk_pressure_no_pod_is_admitted() -> None:
    async with Bench().running() as bench:
        bench.kubelet.pressure("DiskPressure", True)
        await asyncio.sleep(15)
        request = {"requests": {"memory": "16Mi"}}
        container = {"name": "c", "image": "busybox:1", "resources": request}
        spec = {"nodeName": "spot-1", "containers": [container]}
        await bench.kube.create(POD, {"metadata": {"name": "burst", "namespace": "default"}, "spec": spec})
        await bench.until(lambda: bench.phase("burst") == "Failed", within_s=5)
        assert (await bench.pod("burst"))["status"]["message"] == (
            "Pod was rejected: The node had condition: [DiskPressure]. "
        )
