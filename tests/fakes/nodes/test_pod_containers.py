"""Pods of more than one container and more than a process: init containers, sidecars, hooks, configuration, gates."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from node_bench import EXACT, Bench, condition, now

from fakes.timing import Timing
from harness.kube.port import CONFIG_MAP, POD, SECRET, Json, PatchType

pytestmark = pytest.mark.looptime

IMAGE = "busybox:1"
FOREVER: str | list[str] = ["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 0.2; done"]


def bench() -> Bench:
    return Bench(scripts=True, baked=(IMAGE,), timing=Timing(1.0, EXACT))


def container(name: str, script: str | list[str] = FOREVER, **more: Any) -> Json:
    command = script if isinstance(script, list) else ["sh", "-c", script]
    return {"name": name, "image": IMAGE, "command": command, **more}


async def add(on: Bench, *mains: Json, name: str = "p", **spec: Any) -> None:
    meta = {"name": name, "namespace": "default"}
    await on.kube.create(POD, {"metadata": meta, "spec": {"nodeName": "spot-1", "containers": list(mains), **spec}})


def states(on: Bench, name: str = "p") -> dict[str, str]:
    """By container: running, terminated, or the reason why it waits."""
    status = on.last(name)["status"]
    found: dict[str, str] = {}
    for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        ((state, about),) = one["state"].items()
        found[one["name"]] = about["reason"] if state == "waiting" else state
    return found


async def until_states(on: Bench, within_s: float = 60, **wanted: str) -> float:
    return await on.until(lambda: bool(on.seen) and states(on).items() >= wanted.items(), within_s)


async def test_init_containers_run_one_after_another_before_all_others() -> None:
    async with bench().running() as on:
        inits = [container("first", "sleep 5"), container("second", "sleep 3; echo ready")]
        await add(on, container("main"), initContainers=inits)
        await until_states(on, first="running", second="PodInitializing", main="PodInitializing")
        status = on.last("p")["status"]
        initialized = next(c for c in status["conditions"] if c["type"] == "Initialized")
        assert (status["phase"], initialized["status"]) == ("Pending", "False")
        assert (initialized["reason"], initialized["message"]) == (
            "ContainersNotInitialized", "containers with incomplete status: [first second]"
        )  # fmt: skip
        await until_states(on, first="terminated", second="running")
        await on.until_ready("p")
        status = on.last("p")["status"]
        assert (status["phase"], condition(on.last("p"), "Initialized")) == ("Running", "True")
        assert [c["ready"] for c in status["initContainerStatuses"]] == [True, True]
        assert now() == pytest.approx(0.5 + 1 + 5 + 1 + 3 + 1, abs=0.3)
        assert on.logs.read("default", "p", "second") == "ready\n"


@pytest.mark.parametrize("policy, phase", [("Never", "Failed"), ("OnFailure", "Pending")])
async def test_an_init_container_that_fails(policy: str, phase: str) -> None:
    async with bench().running() as on:
        inits = [container("first", "exit 1"), container("second", "exit 0")]
        await add(on, container("main"), initContainers=inits, restartPolicy=policy)
        await asyncio.sleep(25)
        status = on.last("p")["status"]
        assert (status["phase"], states(on)["second"]) == (phase, "PodInitializing")
        assert (status["initContainerStatuses"][0]["restartCount"] > 0) is (policy == "OnFailure")


async def test_a_sidecar_starts_first_outlives_the_others_and_never_counts() -> None:
    async with bench().running() as on:
        probe = {"exec": {"command": ["test", "-e", "/tmp/up"]}, "periodSeconds": 1}
        script = "trap 'exit 9' TERM; sleep 4; touch /tmp/up; while true; do sleep 0.2; done"
        sidecar = container("proxy", script, restartPolicy="Always", startupProbe={**probe, "failureThreshold": 20})
        await add(on, container("main", "sleep 10"), initContainers=[sidecar], restartPolicy="Never")
        await until_states(on, proxy="running", main="PodInitializing")
        await until_states(on, main="running")
        assert now() >= 1 + 4
        await on.until(lambda: on.phase("p") == "Succeeded")
        ended = {
            c["name"]: c["state"]["terminated"]
            for c in (*on.last("p")["status"]["initContainerStatuses"], *on.last("p")["status"]["containerStatuses"])
        }
        assert (ended["proxy"]["exitCode"], ended["main"]["exitCode"]) == (9, 0)
        assert ended["proxy"]["finishedAt"] >= ended["main"]["finishedAt"]


async def test_on_deletion_sidecars_go_last() -> None:
    async with bench().running() as on:
        main = container("main", "trap 'sleep 3; exit 0' TERM; while true; do sleep 0.2; done")
        await add(on, main, initContainers=[container("proxy", restartPolicy="Always")])
        await on.until_ready("p")
        await on.kube.delete(POD, "p", "default")
        await on.until_gone("p")
        killing = [message for reason, message in await on.events("p") if reason == "Killing"]
        assert killing == ["Stopping container main", "Stopping container proxy"]
        assert on.last("p")["status"]["phase"] == "Succeeded"


async def test_containers_of_a_pod_start_in_order_and_one_failing_does_not_hold_up_the_next() -> None:
    async with bench().running() as on:
        await add(on, {**container("bad"), "image": "busybox:missing"}, container("good"))
        await until_states(on, bad="ErrImagePull", good="running")
        assert on.last("p")["status"]["phase"] == "Pending"  # one of them has never run


@pytest.mark.parametrize(
    "code, restarts, phase", [(0, False, "Succeeded"), (2, True, "Running")], ids=["done", "failed"]
)
async def test_restart_on_failure(code: int, restarts: bool, phase: str) -> None:
    async with bench().running() as on:
        await add(on, container("main", f"sleep 1; exit {code}"), restartPolicy="OnFailure")
        await asyncio.sleep(9)
        status = on.last("p")["status"]
        assert status["phase"] == phase
        assert bool(status["containerStatuses"][0].get("restartCount")) is restarts


@pytest.mark.parametrize(
    "hook, said, ends_s",
    [
        pytest.param({"exec": {"command": ["sh", "-c", "sleep 3"]}}, False, 3.2, id="exec"),
        pytest.param({"exec": {"command": ["sh", "-c", "exit 1"]}}, True, 0.2, id="exec-fails"),
        pytest.param({"exec": {"command": ["sh", "-c", "sleep 20"]}}, True, 6.2, id="exec-too-long"),
        pytest.param({"httpGet": {"path": "/drain", "port": 80}}, True, 0.2, id="http-refused"),
        pytest.param({"sleep": {"seconds": 2}}, False, 2.2, id="sleep"),
    ],
)
async def test_what_runs_before_sigterm(hook: Json, said: bool, ends_s: float) -> None:
    async with bench().running() as on:
        await add(on, container("main", lifecycle={"preStop": hook}), terminationGracePeriodSeconds=6)
        await on.until_ready("p")
        began = now()
        await on.kube.delete(POD, "p", "default")
        await on.until(lambda: on.phase("p") != "Running")
        assert now() - began == pytest.approx(ends_s, abs=0.4)
        assert (("FailedPreStopHook", "PreStopHook failed") in await on.events("p")) is said


async def test_a_hook_that_fails_after_the_start_kills_the_container() -> None:
    async with bench().running() as on:
        hook = {"postStart": {"exec": {"command": ["false"]}}}
        await add(on, container("main", lifecycle=hook), terminationGracePeriodSeconds=1)
        await on.until(lambda: bool(on.seen) and on.last("p")["status"].get("containerStatuses", [{}])[0].get(
            "restartCount", 0) > 0)  # fmt: skip
        assert ("FailedPostStartHook", "PostStartHook failed") in await on.events("p")


async def test_a_container_whose_configuration_is_missing_waits_for_it() -> None:
    async with bench().running() as on:
        env = [
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "token", "key": "b", "optional": True}}},
        ]
        await add(on, container("main", env=env))
        await until_states(on, main="CreateContainerConfigError")
        waiting = on.last("p")["status"]["containerStatuses"][0]["state"]["waiting"]
        assert waiting["message"] == 'configmap "settings" not found'
        assert ("Failed", 'Error: configmap "settings" not found') in await on.events("p")
        await on.kube.create(CONFIG_MAP, {"metadata": {"name": "settings", "namespace": "default"}, "data": {"x": "1"}})
        await on.until(lambda: "couldn't find key a in ConfigMap default/settings" in str(on.last("p")["status"]))
        await on.kube.patch(CONFIG_MAP, "settings", {"data": {"a": "1"}}, "default")
        await on.until_ready("p")


async def test_a_volume_that_cannot_be_set_up_keeps_the_pod_creating() -> None:
    async with bench().running() as on:
        await add(on, container("main"), volumes=[{"name": "keys", "secret": {"secretName": "keys"}}])
        await asyncio.sleep(20)
        assert states(on) == {"main": "ContainerCreating"}
        said = 'MountVolume.SetUp failed for volume "keys" : secret "keys" not found'
        assert ("FailedMount", said) in await on.events("p")
        await on.kube.create(SECRET, {"metadata": {"name": "keys", "namespace": "default"}})
        await on.until_ready("p")


async def test_a_readiness_gate_waits_for_somebody_elses_condition() -> None:
    async with bench().running() as on:
        await add(on, container("main"), readinessGates=[{"conditionType": "example.com/routed"}])
        await until_states(on, main="running")
        await asyncio.sleep(1)
        ready = next(c for c in on.last("p")["status"]["conditions"] if c["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
        assert ready["message"] == 'corresponding condition of pod readiness gate "example.com/routed" does not exist.'
        assert condition(on.last("p"), "ContainersReady") == "True"
        routed = {"status": {"conditions": [{"type": "example.com/routed", "status": "True"}]}}
        await on.kube.patch(POD, "p", routed, "default", type=PatchType.STRATEGIC, subresource="status")
        await on.until_ready("p")


async def test_a_silent_kubelet_writes_nothing_and_its_pods_go_on() -> None:
    async with bench().running() as on:
        await add(on, container("main"), name="old")
        await on.until_ready("old")
        on.kubelet.hold(frozen=True)
        await asyncio.sleep(1)
        revision = on.store.revision
        await add(on, container("main"), name="new")
        await on.kube.delete(POD, "old", "default")
        await asyncio.sleep(346)
        assert on.store.revision == revision + 2  # ours
        assert condition(on.pods.objects["default", "old"], "Ready") == "True"
        on.kubelet.release()
        back = now()
        await on.until_ready("new")
        await on.until_gone("old")
        assert now() - back <= 4
        await asyncio.sleep(15)
        readies = [
            (t - back, c["status"], c["message"])
            for t, n in on.nodes_seen
            for c in n["status"]["conditions"]
            if c["type"] == "Ready" and t >= back
        ]
        t0, why = next((t, why) for t, status, why in readies if status == "False")
        t1 = next(t for t, status, _ in readies if status == "True" and t > t0)
        assert why == "PLEG is not healthy: pleg was last seen active 5m47s ago; threshold is 3m0s"
        assert t0 <= 1 < t1 <= 11


async def test_a_pod_that_does_not_fit_is_refused_by_the_kubelet_itself() -> None:
    async with bench().running() as on:
        await add(on, container("main", resources={"requests": {"cpu": "20"}}), name="first")
        await on.until_ready("first")
        await add(on, container("main", resources={"requests": {"cpu": "20"}}), name="second")
        await on.until(lambda: on.phase("second") == "Failed")
        status = on.last("second")["status"]
        why = "Node didn't have enough resource: cpu, requested: 20000, used: 20000, capacity: 32000"
        assert (status["reason"], status["message"]) == ("OutOfcpu", f"Pod was rejected: {why}")
        await add(on, container("main"), name="third", nodeSelector={"disk": "nvme"})
        await on.until(lambda: on.phase("third") == "Failed")
        assert on.last("third")["status"]["reason"] == "NodeAffinity"
