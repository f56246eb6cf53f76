"""The device plugin's life as the Node shows it, against what a real kubelet 1.37 was seen to do: the 10 s status tick,
keys absent or "0", capacity that outlives its plugin by five minutes, and pods refused for good."""

from __future__ import annotations

import asyncio
import math

import pytest
from node_bench import Bench, condition, now

from harness.kube.port import NODE, POD

pytestmark = pytest.mark.looptime

GPU = "nvidia.com/gpu"
TICK_S = 10.2


def shown(bench: Bench) -> tuple[str | None, str | None]:
    """(capacity, allocatable) of the newest Node."""
    status = bench.nodes.objects[("", "spot-1")]["status"]
    return status["capacity"].get(GPU), status["allocatable"].get(GPU)


async def until_shown(bench: Bench, capacity: str | None, allocatable: str | None, within_s: float) -> float:
    began = now()
    await bench.until(lambda: shown(bench) == (capacity, allocatable), within_s)
    return now() - began


async def test_no_plugin_no_key_and_its_devices_come_with_a_tick() -> None:
    bench = Bench(provisioned=True)
    bench.kubelet.plugin.late_s = math.inf
    async with bench.running():
        await asyncio.sleep(300)
        assert condition(bench.nodes.objects[("", "spot-1")], "Ready") == "True"
        assert shown(bench) == (None, None)
        await asyncio.sleep(3)
        bench.kubelet.plugin.start()
        assert 5 <= await until_shown(bench, "4", "4", TICK_S) <= TICK_S


async def test_health_moves_allocatable_only_and_the_pod_runs_on() -> None:
    async with Bench().running() as bench:
        await bench.add_pod()
        await bench.until_ready()
        await asyncio.sleep(1)
        bench.kubelet.plugin.set_health("GPU-spot-1-0", False)
        await until_shown(bench, "4", "3", TICK_S)
        status = (await bench.pod())["status"]
        assert status["containerStatuses"][0]["allocatedResourcesStatus"] == [
            {"name": GPU, "resources": [{"resourceID": "GPU-spot-1-0", "health": "Unhealthy"}]}
        ]
        assert bench.condition("llm-0", "Ready") == "True"
        bench.kubelet.plugin.set_health("GPU-spot-1-0", True)
        await until_shown(bench, "4", "4", TICK_S)
        bench.kubelet.plugin.set_devices(bench.kubelet.plugin.ids[:3])
        await until_shown(bench, "3", "3", TICK_S)


async def test_a_dead_plugin_leaves_its_capacity_for_five_minutes() -> None:
    async with Bench().running() as bench:
        await bench.add_pod()
        await bench.until_ready()
        bench.kubelet.plugin.crash()
        died = now()
        await until_shown(bench, "4", "0", TICK_S)
        await until_shown(bench, "0", "0", 320)
        assert 300 <= now() - died <= 310.2
        status = (await bench.pod())["status"]
        assert (status["phase"], condition({"status": status}, "Ready")) == ("Running", "True")
        assert status["containerStatuses"][0]["allocatedResourcesStatus"][0]["resources"][0]["health"] == "Healthy"
        bench.kubelet.plugin.start()
        await until_shown(bench, "4", "4", TICK_S)
        await bench.add_pod("three", gpus=3)
        await bench.until_ready("three")
        held = bench.last("three")["status"]["containerStatuses"][0]["allocatedResourcesStatus"][0]["resources"]
        assert "GPU-spot-1-0" not in {r["resourceID"] for r in held}  # still the first pod's


async def test_a_plugin_that_comes_back_within_a_tick_is_not_missed() -> None:
    async with Bench().running() as bench:
        await asyncio.sleep(11)
        bench.kubelet.plugin.crash()
        await asyncio.sleep(1)
        bench.kubelet.plugin.start()
        await asyncio.sleep(30)
        assert {n["status"]["allocatable"][GPU] for _, n in bench.nodes_seen} == {"4"}


@pytest.mark.parametrize(
    "registers_again, after", [(True, ("4", "4")), (False, ("0", "0"))], ids=["registers-again", "does-not"]
)
async def test_a_kubelet_restart(registers_again: bool, after: tuple[str, str]) -> None:
    async with Bench().running() as bench:
        bench.kubelet.plugin.registers_again = registers_again
        await bench.add_pod()
        await bench.until_ready()
        bench.kubelet.restart()
        await asyncio.sleep(60)
        assert shown(bench) == after
        assert bench.runtime.made[0].log == []  # no container noticed


async def test_allocate_errors_end_the_pod_verbatim() -> None:
    async with Bench().running() as bench:
        bench.kubelet.plugin.allocate_error = "Xid 79 GPU has fallen off the bus"
        await bench.add_pod("xid")
        await bench.until(lambda: bench.phase("xid") == "Failed")
        said = (
            "Allocate failed due to rpc error: code = Internal desc = Xid 79 GPU has fallen off the bus, "
            "which is unexpected"
        )
        status = (await bench.pod("xid"))["status"]
        assert (status["reason"], status["message"]) == ("UnexpectedAdmissionError", f"Pod was rejected: {said}")
        bench.kubelet.plugin.allocate_error = None
        await bench.add_pod("next", gpus=4)  # nothing is held
        await bench.until_ready("next")


async def test_a_plugin_that_dies_inside_allocate() -> None:
    async with Bench().running() as bench:
        bench.kubelet.plugin.allocate_s = 20
        await bench.add_pod("a")
        await asyncio.sleep(5)
        bench.kubelet.plugin.crash()
        await bench.until(lambda: bench.phase("a") == "Failed", within_s=5)
        assert "code = Unavailable desc = Cancelling all calls" in (await bench.pod("a"))["status"]["message"]
        await bench.add_pod("b")
        await bench.until(lambda: bench.phase("b") == "Failed", within_s=5)
        assert (await bench.pod("b"))["status"]["message"] == (
            "Pod was rejected: Allocate failed due to no healthy devices present; "
            "cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected"
        )


async def test_a_hung_allocate_freezes_every_start_and_end_on_a_node_that_says_ready() -> None:
    async with Bench().running() as bench:
        await bench.add_pod("victim", gpus=0, terminationGracePeriodSeconds=2)
        await bench.add_pod("job", gpus=0, restartPolicy="Never")
        await bench.until_ready("victim")
        await bench.until_ready("job")
        bench.kubelet.plugin.hang()
        await bench.add_pod("hang")
        await asyncio.sleep(1)
        await bench.kube.delete(POD, "victim", "default")
        bench.runtime.of["job"].exit(0)
        await bench.add_pod("plain", gpus=0)
        await asyncio.sleep(75)
        node = await bench.kube.get(NODE, "spot-1")
        assert (condition(node, "Ready"), shown(bench)) == ("True", ("4", "4"))
        assert [bench.phase(name) for name in ("victim", "job", "hang", "plain")] == [
            "Running", "Running", "Pending", "Pending",
        ]  # fmt: skip
        assert bench.runtime.of["victim"].log == []  # no SIGTERM reached it, long past its grace
        bench.kubelet.plugin.resume()
        resumed = now()
        await bench.until(lambda: bench.phase("job") == "Succeeded", within_s=2)
        await bench.until_gone("victim")
        await bench.until_ready("hang")
        await bench.until_ready("plain")
        assert now() - resumed <= 5


async def test_pods_of_a_rebooted_node_with_a_late_plugin() -> None:
    """A GPU pod fails for good before the plugin is there; another pod is back with a restart to its name."""
    async with Bench().running() as bench:
        await bench.add_pod("gpu")
        await bench.add_pod("plain", gpus=0)
        await bench.until_ready("gpu")
        await bench.until_ready("plain")
        bench.kubelet.reboot(off_s=4)
        assert all(made.streams_cut for made in bench.runtime.made)
        await bench.until(lambda: bench.phase("gpu") == "Failed", within_s=10)
        message = (await bench.pod("gpu"))["status"]["message"]
        assert message.startswith("Pod was rejected: Allocate failed due to no healthy devices present")
        assert shown(bench) == ("0", "0")
        await bench.until(lambda: restarts(bench, "plain") == 1, within_s=10)
        (container,) = (await bench.pod("plain"))["status"]["containerStatuses"]
        last = container["lastState"]["terminated"]
        assert (last["exitCode"], last["reason"]) == (255, "Unknown")
        assert {condition(n, "Ready") for _, n in bench.nodes_seen} == {"True"}
        assert len({n["status"]["nodeInfo"]["bootID"] for _, n in bench.nodes_seen}) == 2
        await until_shown(bench, "4", "4", 30)
        await asyncio.sleep(60)
        assert bench.phase("gpu") == "Failed"
        assert "SandboxChanged" in [reason for reason, _ in await bench.events("plain")]
        assert "Rebooted" in [reason for reason, _ in await bench.events("spot-1")]


def restarts(bench: Bench, name: str) -> int:
    (container,) = bench.last(name)["status"]["containerStatuses"]
    return int(container["restartCount"])
