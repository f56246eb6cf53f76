"""A pod's life on a hollow node: the order, the moments and the shape of what a real kubelet writes."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from node_bench import EXACT, Bench, ScriptedContainer, ScriptedRuntime, condition, expect_absent, now

from fakes.config import PlantedBug
from fakes.nodes.address import listen_address
from fakes.timing import Timing
from harness.kube.port import POD, PatchType

pytestmark = pytest.mark.looptime

PROBE = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 5}


async def test_a_pod_starts_and_becomes_ready() -> None:
    async with Bench().running() as bench:
        await bench.add_pod(readinessProbe=PROBE)
        await bench.until(lambda: len(bench.runtime.made) == 1)
        created = now()
        assert created == pytest.approx(0.5 + 20 + 1, abs=0.2)  # sandbox, pull, start
        asyncio.get_running_loop().call_later(22, bench.runtime.made[0].serve)
        ready = await bench.until_ready()
        assert 22 <= ready - created <= 27.2  # the first probe after the model was loaded
        pod = await bench.pod()
        assert listen_address(pod) == ("127.0.0.1", 4000)
        assert pod["status"]["podIP"] == "10.244.3.3"
        phases = [p["status"]["phase"] for _, _, p in bench.seen]
        assert phases == sorted(phases, key=("Pending", "Running").index)
        assert listen_address(next(p for _, _, p in bench.seen if p["status"]["phase"] == "Running")) is not None


async def test_the_status_of_a_running_gpu_pod_has_the_shape_of_a_real_one() -> None:
    async with Bench().running() as bench:
        await bench.add_pod()
        await bench.until_ready()
        status = (await bench.pod())["status"]
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "PodReadyToStartContainers": "True", "Initialized": "True", "Ready": "True", "ContainersReady": "True",
    }  # fmt: skip
    assert all("reason" not in c and "message" not in c for c in status["conditions"])
    assert set(status) == {
        "observedGeneration", "phase", "conditions", "hostIP", "hostIPs", "podIP", "podIPs", "startTime",
        "containerStatuses", "qosClass",
    }  # fmt: skip
    (container,) = status["containerStatuses"]
    assert set(container) == {
        "name", "state", "lastState", "ready", "restartCount", "image", "imageID", "containerID", "started",
        "allocatedResources", "resources", "allocatedResourcesStatus",
    }  # fmt: skip
    assert container["allocatedResourcesStatus"] == [
        {"name": "nvidia.com/gpu", "resources": [{"resourceID": "GPU-spot-1-0", "health": "Healthy"}]}
    ]
    assert set(container["state"]["running"]) == {"startedAt"}


async def test_an_image_is_pulled_once_per_node_and_the_second_pull_waits() -> None:
    async with Bench().running() as bench:
        await bench.add_pod("a")
        await bench.add_pod("b")
        await bench.until_ready("a")
        await bench.until_ready("b")
        assert now() == pytest.approx(21.5, abs=0.2)
        await bench.add_pod("c")
        began = now()
        await bench.until_ready("c")
        assert now() - began == pytest.approx(1.5, abs=0.2)
        a, b, c = [dict(await bench.events(name)) for name in "abc"]
    image = "vllm/vllm-openai:v0.32.0"
    took = sorted(message.partition(f'pulled image "{image}" in ')[2] for message in (a["Pulled"], b["Pulled"]))
    assert [text.partition(".")[0] for text in took] == ["0s (20s including waiting)", "20s (20s including waiting)"]
    assert c["Pulled"] == f'Container image "{image}" already present on machine and can be accessed by the pod'
    assert [list(e) for e in (a, c)] == [["Pulling", "Pulled", "Created", "Started"], ["Pulled", "Created", "Started"]]


async def test_a_graceful_delete_waits_for_the_hook_and_the_streams() -> None:
    runtime = ScriptedRuntime(lambda: ScriptedContainer(drain_s=30))
    async with Bench(runtime=runtime).running() as bench:
        hook = {"preStop": {"sleep": {"seconds": 10}}}
        await bench.add_pod(lifecycle=hook, terminationGracePeriodSeconds=90)
        await bench.until_ready()
        (container,) = runtime.made
        deleted = now()
        await bench.kube.delete(POD, "llm-0", "default")
        await bench.until_gone()
        ended = bench.first("llm-0", lambda pod: pod["status"]["phase"] == "Succeeded")
        assert container.at("TERM") - deleted == pytest.approx(10, abs=0.1)
        assert ended - deleted == pytest.approx(40, abs=0.1)
        assert 0.3 <= now() - ended <= 0.8
        assert not container.streams_cut
        # Ready to the end, as a real kubelet leaves it; then the terminal phase in the same write.
        after = [
            (condition(p, "Ready"), p["status"]["phase"])
            for t, _, p in bench.seen
            if t >= deleted and "deletionTimestamp" in p["metadata"]
        ]
        assert list(dict.fromkeys(after)) == [("True", "Running"), ("False", "Succeeded")]
        last = bench.last()["status"]
    reasons = {c["type"]: c.get("reason") for c in last["conditions"]}
    assert reasons == {
        "PodReadyToStartContainers": "PodSandboxNotReady", "Initialized": "PodCompleted",
        "Ready": "PodCompleted", "ContainersReady": "PodCompleted",
    }  # fmt: skip
    terminated = last["containerStatuses"][0]["state"]["terminated"]
    assert set(terminated) == {"exitCode", "reason", "startedAt", "finishedAt", "containerID"}
    assert (terminated["exitCode"], terminated["reason"]) == (0, "Completed")


async def test_streams_still_open_when_the_grace_ends_are_cut() -> None:
    runtime = ScriptedRuntime(lambda: ScriptedContainer(drain_s=None))
    async with Bench(runtime=runtime).running() as bench:
        hook = {"preStop": {"sleep": {"seconds": 10}}}
        await bench.add_pod(lifecycle=hook, terminationGracePeriodSeconds=25)
        await bench.until_ready()
        deleted = now()
        await bench.kube.delete(POD, "llm-0", "default")
        await bench.until_gone()
        (container,) = runtime.made
        assert container.at("exit 137") - deleted == pytest.approx(25, abs=0.1)  # not 10 + 25
        assert container.streams_cut
        assert bench.last()["status"]["phase"] == "Failed"


async def test_a_hook_longer_than_the_grace_leaves_sigterm_two_seconds() -> None:
    runtime = ScriptedRuntime(lambda: ScriptedContainer(drain_s=None))
    async with Bench(runtime=runtime).running() as bench:
        # The API refuses a sleep beyond the pod's own grace, so it is the delete that asks for less.
        await bench.add_pod(lifecycle={"preStop": {"sleep": {"seconds": 20}}}, terminationGracePeriodSeconds=30)
        await bench.until_ready()
        deleted = now()
        await bench.kube.delete(POD, "llm-0", "default", grace_s=4)
        await bench.until_gone()
        (container,) = runtime.made
        assert container.at("TERM") - deleted == pytest.approx(4, abs=0.1)
        assert container.at("exit 137") - deleted == pytest.approx(6, abs=0.1)
        assert ("FailedPreStopHook", "PreStopHook failed") in await bench.events()


async def test_a_second_delete_shortens_the_grace() -> None:
    runtime = ScriptedRuntime(lambda: ScriptedContainer(drain_s=None))
    async with Bench(runtime=runtime).running() as bench:
        await bench.add_pod(terminationGracePeriodSeconds=600)
        await bench.until_ready()
        deleted = now()
        await bench.kube.delete(POD, "llm-0", "default")
        await asyncio.sleep(5)
        await bench.kube.delete(POD, "llm-0", "default", grace_s=15)
        await bench.until_gone()
        assert runtime.made[0].at("exit 137") - deleted == pytest.approx(15, abs=0.1)


async def test_a_forced_delete_stops_the_process_though_the_object_is_gone_at_once() -> None:
    runtime = ScriptedRuntime(lambda: ScriptedContainer(drain_s=None))
    async with Bench(runtime=runtime).running() as bench:
        await bench.add_pod()
        await bench.until_ready()
        await bench.kube.delete(POD, "llm-0", "default", grace_s=0)
        await expect_absent(bench.kube, "llm-0")
        await bench.until(lambda: runtime.made[0].streams_cut, within_s=3)
        await asyncio.sleep(0.1)
        await bench.add_pod("next", gpus=4)
        await bench.until_ready("next")  # the devices are free again


async def test_a_pod_deleted_before_it_started_goes_without_a_process() -> None:
    async with Bench().running() as bench:
        await bench.add_pod()
        await asyncio.sleep(5)
        await bench.kube.delete(POD, "llm-0", "default")
        await bench.until_gone()
        assert now() < 7
        assert bench.runtime.made == []
        status = bench.last()["status"]
        assert status["phase"] == "Failed"
        assert status["containerStatuses"][0]["state"]["terminated"]["reason"] == "ContainerStatusUnknown"


async def test_power_loss_cuts_streams_and_writes_nothing() -> None:
    async with Bench().running() as bench:
        await bench.add_pod()
        await bench.until_ready()
        revision = bench.store.revision
        bench.kubelet.kill()
        assert bench.runtime.made[0].streams_cut
        await asyncio.sleep(120)
        assert bench.store.revision == revision
        assert (await bench.pod())["status"]["phase"] == "Running"


async def test_power_loss_in_the_middle_of_a_drain() -> None:
    runtime = ScriptedRuntime(lambda: ScriptedContainer(drain_s=30))
    async with Bench(runtime=runtime).running() as bench:
        await bench.add_pod(terminationGracePeriodSeconds=90)
        await bench.until_ready()
        await bench.kube.delete(POD, "llm-0", "default")
        await asyncio.sleep(10)
        revision = bench.store.revision
        bench.kubelet.kill()
        await asyncio.sleep(120)
        assert runtime.made[0].streams_cut
        assert bench.store.revision == revision


async def test_readiness_is_lost_and_found_by_the_probes_own_thresholds() -> None:
    async with Bench().running() as bench:
        await bench.add_pod(readinessProbe={**PROBE, "failureThreshold": 2})
        await bench.until(lambda: len(bench.runtime.made) == 1)
        (container,) = bench.runtime.made
        container.serve()
        await bench.until_ready()
        container.serve(503)
        failed = now()
        await bench.until(lambda: bench.condition("llm-0", "Ready") == "False")
        assert 5 <= now() - failed <= 10.2
        status = (await bench.pod())["status"]
        ready = next(c for c in status["conditions"] if c["type"] == "Ready")
        assert (ready["reason"], ready["message"]) == (
            "ContainersNotReady", "containers with unready status: [vllm]"
        )  # fmt: skip
        assert status["containerStatuses"][0]["started"] is True
        container.serve()
        await bench.until_ready()
        assert ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503") in await bench.events()


async def test_a_refused_probe_says_so_with_the_pods_address() -> None:
    async with Bench().running() as bench:
        await bench.add_pod(readinessProbe=PROBE)
        await bench.until(lambda: len(bench.runtime.made) == 1)
        await asyncio.sleep(1)
        assert (
            "Unhealthy",
            'Readiness probe failed: Get "http://10.244.3.3:8000/health": '
            "dial tcp 10.244.3.3:8000: connect: connection refused",
        ) in await bench.events()


async def test_readiness_waits_for_the_startup_probe() -> None:
    async with Bench().running() as bench:
        await bench.add_pod(startupProbe={**PROBE, "failureThreshold": 60}, readinessProbe=PROBE)
        await bench.until(lambda: len(bench.runtime.made) == 1)
        await asyncio.sleep(1)
        assert (await bench.pod())["status"]["containerStatuses"][0]["started"] is False
        bench.runtime.made[0].serve()
        await bench.until_ready()
        assert (await bench.pod())["status"]["containerStatuses"][0]["started"] is True


async def test_a_failing_liveness_probe_restarts_the_container() -> None:
    async with Bench().running() as bench:
        await bench.add_pod(livenessProbe=PROBE)
        await bench.until_ready()
        bench.runtime.made[0].serve(500)
        await bench.until(lambda: len(bench.runtime.made) == 2)
        assert (await bench.pod())["status"]["containerStatuses"][0]["restartCount"] == 1
        assert ("Killing", "Container vllm failed liveness probe, will be restarted") in await bench.events()


async def test_a_container_that_exits_is_restarted_with_a_growing_back_off() -> None:
    starts: list[float] = []

    def crashing() -> ScriptedContainer:
        container = ScriptedContainer()
        starts.append(now())
        asyncio.get_running_loop().call_soon(container.exit, 3)
        return container

    async with Bench(runtime=ScriptedRuntime(crashing)).running() as bench:
        pod = await bench.add_pod()
        await bench.until(lambda: len(starts) == 4)
        gaps = [b - a for a, b in pairwise(starts)]
        # Container start, then 10 s and 20 s before it, and up to half as long again.
        assert gaps[0] == pytest.approx(1, abs=0.2)
        assert 11 <= gaps[1] <= 16.1
        assert 21 <= gaps[2] <= 31.1
        await asyncio.sleep(0.5)
        (status,) = (await bench.pod())["status"]["containerStatuses"]
        assert (status["restartCount"], status["state"]["terminated"]["exitCode"]) == (3, 3)
        await asyncio.sleep(1)
        (status,) = (await bench.pod())["status"]["containerStatuses"]
        uid = pod["metadata"]["uid"]
        assert status["state"]["waiting"] == {
            "reason": "CrashLoopBackOff",
            "message": f"back-off 40s restarting failed container=vllm pod=llm-0_default({uid})",
        }
        assert (status["restartCount"], status["lastState"]["terminated"]["exitCode"]) == (3, 3)
        assert bench.condition("llm-0", "Ready") == "False"
        await bench.kube.delete(POD, "llm-0", "default")
        await bench.until_gone()
        assert bench.last()["status"]["phase"] == "Failed"


async def test_a_pod_that_must_not_restart_ends_with_its_container() -> None:
    async with Bench().running() as bench:
        await bench.add_pod(restartPolicy="Never")
        await bench.until_ready()
        bench.runtime.made[0].exit(0)
        await bench.until(lambda: bench.phase() == "Succeeded")
        await asyncio.sleep(60)
        assert len(bench.runtime.made) == 1
        await bench.add_pod("next", gpus=4)  # its GPU is free though the object is still there
        await bench.until_ready("next")


async def test_a_pod_that_asks_for_more_gpus_than_there_are_is_rejected() -> None:
    async with Bench().running() as bench:
        await bench.add_pod("first")
        await bench.until_ready("first")
        await bench.add_pod("toomany", gpus=8)
        await bench.until(lambda: bench.phase("toomany") == "Failed")
        status = (await bench.pod("toomany"))["status"]
        said = (
            "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
            "Requested: 8, Available: 3, which is unexpected"
        )
        assert (status["reason"], status["message"]) == ("UnexpectedAdmissionError", f"Pod was rejected: {said}")
        assert set(status) == {"phase", "reason", "message", "startTime", "qosClass", "observedGeneration"}
        assert await bench.events("toomany") == [("UnexpectedAdmissionError", said)]
        await bench.kube.delete(POD, "toomany", "default")
        await bench.until_gone("toomany")


async def test_conditions_of_others_survive_and_our_own_are_put_right() -> None:
    async with Bench().running() as bench:
        await bench.add_pod()
        await bench.until_ready()
        for type, status in (("DisruptionTarget", "True"), ("Ready", "False")):
            patch = {"status": {"conditions": [{"type": type, "status": status}]}}
            await bench.kube.patch(POD, "llm-0", patch, "default", type=PatchType.STRATEGIC, subresource="status")
        await asyncio.sleep(1)
        assert [s for _, _, p in bench.seen[-2:] for s in [condition(p, "Ready")]] == ["False", "True"]
        assert bench.condition("llm-0", "DisruptionTarget") == "True"


async def test_planted_bug_says_ready_before_it_serves() -> None:
    bugs = frozenset({PlantedBug.READY_BEFORE_SERVING})
    async with Bench(bugs=bugs).running() as bench:
        await bench.add_pod(readinessProbe=PROBE)
        ready = await bench.until_ready()
        assert bench.runtime.made[0].health is None
        assert ready == pytest.approx(21.5, abs=0.2)


async def test_pod_durations_follow_the_time_scale() -> None:
    runtime = ScriptedRuntime(lambda: ScriptedContainer(drain_s=None))
    async with Bench(runtime=runtime, timing=Timing(10.0, EXACT)).running() as bench:
        await bench.add_pod(lifecycle={"preStop": {"sleep": {"seconds": 10}}}, terminationGracePeriodSeconds=90)
        assert await bench.until_ready() == pytest.approx(2.15, abs=0.05)
        deleted = now()
        await bench.kube.delete(POD, "llm-0", "default")
        await bench.until_gone()
        assert runtime.made[0].at("TERM") - deleted == pytest.approx(1, abs=0.05)
        assert runtime.made[0].at("exit 137") - deleted == pytest.approx(9, abs=0.05)
