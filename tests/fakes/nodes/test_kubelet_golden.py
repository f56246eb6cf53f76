"""The hollow kubelet beside a real one: objects, events and timelines that a kubelet 1.37.2 with containerd and a
device plugin wrote, for the same pods and the same faults.

In ``golden/`` times, ids and addresses are placeholders; fields of a pod as a whole that a hollow node leaves out
(``resources``, ``allocatedResources``) are not kept. ``seen`` must hold each golden status as one of its versions.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from node_bench import POOL, Bench, now

from fakes.timing import Durations, Spread, Timing
from harness.kube.port import EVENT, POD, Json

pytestmark = pytest.mark.looptime

GOLDEN = Path(__file__).parent / "golden"
PODS: dict[str, Any] = json.loads((GOLDEN / "pods.json").read_text())
EVENTS: dict[str, list[list[str]]] = json.loads((GOLDEN / "events.json").read_text())
NODES: dict[str, Any] = json.loads((GOLDEN / "nodes.json").read_text())
TIMELINES: dict[str, list[list[Any]]] = json.loads((GOLDEN / "timelines.json").read_text())

FAST = Timing(1.0, Durations(image_pull=Spread(1), container_start=Spread(0.4), device_plugin=Spread(2)))
IMAGES = ("localhost/busybox:1", "localhost/python:1")
GPU = "nvidia.com/gpu"
START_ERROR = "gpu-harness.dev/start-error"


def bench(**more: Any) -> Bench:
    return Bench(scripts=True, baked=IMAGES, timing=FAST, **more)


async def start(on: Bench, case: str, **annotations: str) -> str:
    """Makes the pod of the case on the node; its name."""
    golden = PODS[case]
    meta = {"name": golden["name"], "namespace": "default", "annotations": annotations}
    spec = json.loads(json.dumps(golden["spec"])) | {"nodeName": "spot-1"}
    await on.kube.create(POD, {"metadata": meta, "spec": spec})
    return str(golden["name"])


def state(on: Bench, name: str) -> Json:
    """Of the pod's first container; empty before there is one."""
    pod = on.pods.objects.get(("default", name))
    statuses = (pod["status"].get("containerStatuses") if pod else None) or [{"state": {}}]
    return dict(statuses[0]["state"])


# What is done to each pod, after it was made.


async def wait(on: Bench, name: str) -> None:
    await asyncio.sleep(120)


async def delete(on: Bench, name: str) -> None:
    await on.until_ready(name)
    await on.kube.delete(POD, name, "default", grace_s=15)
    await on.until_gone(name)


async def oom_again_and_again(on: Bench, name: str) -> None:
    for _ in range(4):
        await on.until(lambda: "running" in state(on, name))
        await asyncio.sleep(0.3)
        on.kubelet.oom_kill("default", name, "c")
        await asyncio.sleep(0.3)


async def unhealthy(on: Bench, name: str) -> None:
    await on.until_ready(name)
    on.kubelet.plugin.set_health("GPU-spot-1-0", False)
    await asyncio.sleep(1)


async def reboot(on: Bench, name: str) -> None:
    await on.until_ready(name)
    on.kubelet.reboot(4)
    await asyncio.sleep(30)


def evict(kind: str) -> Callable[[Bench, str], Awaitable[None]]:
    async def evicted(on: Bench, name: str) -> None:
        await on.until_ready(name)
        on.kubelet.pressure(kind, True, evictions=1)
        await asyncio.sleep(40)

    return evicted


CASES: dict[str, Callable[[Bench, str], Awaitable[None]]] = {
    "done": wait, "failed": wait, "crash": wait, "badcmd": wait, "noimg": wait, "pull": wait, "deadline": wait,
    "live": wait, "readiness": wait, "terminating": delete, "oom": oom_again_and_again, "gpu_running": wait,
    "gpu_unhealthy": unhealthy, "allocate_error": wait, "too_many": wait, "race": wait, "plugin_dead": wait,
    "reboot_gpu": reboot, "reboot_plain": reboot, "evicted_memory": evict("MemoryPressure"),
    "evicted_at_admission": wait, "evicted_exit0": evict("DiskPressure"), "evicted_sigkill": evict("DiskPressure"),
}  # fmt: skip


async def prepare(on: Bench, case: str) -> dict[str, str]:
    """What must be so before the pod comes; the annotations that it needs."""
    await asyncio.sleep(1)
    match case:
        case "badcmd":
            return {START_ERROR: PODS[case]["status"]["containerStatuses"][0]["lastState"]["terminated"]["message"]}
        case "pull":
            message = PODS[case]["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
            on.registry.fail("127.0.0.1:1/none:1", message.rpartition('none:1": ')[2])
        case "allocate_error":
            on.kubelet.plugin.allocate_error = "Xid 79 GPU has fallen off the bus"
        case "too_many":
            await on.add_pod("holder", gpus=1)
            await on.until_ready("holder")
        case "race":
            await on.add_pod("holder", gpus=1)
            await on.until_ready("holder")
            for n in (1, 2, 3):
                on.kubelet.plugin.set_health(f"GPU-spot-1-{n}", False)
        case "plugin_dead":
            on.kubelet.plugin.crash()
        case "evicted_at_admission":
            on.kubelet.pressure("MemoryPressure", True)
            await asyncio.sleep(15)
        case "evicted_memory" | "evicted_sigkill":
            return {"gpu-harness.dev/exit-s": "1000"}  # its command is none that a hollow container knows
    return {}


@pytest.mark.parametrize("case", CASES)
async def test_a_pods_status_is_the_real_ones(case: str) -> None:
    async with bench().running() as on:
        name = await start(on, case, **await prepare(on, case))
        await CASES[case](on, name)
        wanted = PODS[case]["status"]
        found = [plain(pod["status"]) for _, _, pod in on.seen if pod["metadata"]["name"] == name]
        assert plain(wanted) in found, closest(plain(wanted), found)


@pytest.mark.parametrize("case", EVENTS)
async def test_a_pods_events_are_the_real_ones(case: str) -> None:
    async with bench().running() as on:
        name = await start(on, case, **await prepare(on, case))
        await CASES[case](on, name)
        found: list[list[str]] = []
        for event in (await on.kube.list(EVENT)).items:
            about = event["involvedObject"]
            if about["name"] == name:
                said = [event["type"], event["reason"], about.get("fieldPath", ""), text(event["message"])]
                found += [said] if said not in found else []
    assert sorted(found) == sorted(EVENTS[case])


@pytest.mark.parametrize("case", TIMELINES)
async def test_a_pods_life_goes_through_the_real_ones_states_in_its_times(case: str) -> None:
    """From the first container status on. The real one's machine was busy: a step may be 3 s longer or shorter, and
    what a kubelet does when it next looks, half as long as its wait."""
    deleted = case in ("pre", "deaf")
    wanted = [row for row in TIMELINES[case] if row[4] and (deleted or not row[5])]
    async with bench().running() as on:
        if case == "deaf":
            name = await start_deaf(on)
        else:
            pod = {"pre": "terminating"}.get(case, case)
            name = await start(on, pod, **await prepare(on, pod))
        if deleted:
            await on.until_ready(name)
            await on.kube.delete(POD, name, "default", grace_s=15 if case == "pre" else 6)
            await on.until_gone(name)
        else:
            await asyncio.sleep(200)
    found = timeline([(t, pod) for t, _, pod in on.seen if pod["metadata"]["name"] == name])
    assert [row[1:] for row in found][: len(wanted)] == [row[1:] for row in wanted]
    if case == "crash":  # when it is seen to wait is a race in a real kubelet; when it runs again is not
        found, wanted = ([row for row in rows if row[4][0][0] == "running"] for rows in (found, wanted))
    for (t0, *_), (t1, *_), real0, real1 in zip(found, found[1:], wanted, wanted[1:], strict=False):
        took_s, really_s = t1 - t0, real1[0] - real0[0]
        if real1[5] is real0[5]:  # else the deletion came when the test wanted
            assert took_s == pytest.approx(really_s, abs=3 + (really_s / 2 if case in CRASHES else 0))


CRASHES = ("crash", "pull")


async def start_deaf(on: Bench) -> str:
    container = {"name": "c", "image": IMAGES[0], "command": ["sh", "-c", "touch /tmp/ok; trap '' TERM; sleep 1000"]}
    probe = {"exec": {"command": ["test", "-e", "/tmp/ok"]}, "periodSeconds": 1}
    spec = {"nodeName": "spot-1", "containers": [{**container, "readinessProbe": probe}]}
    await on.kube.create(POD, {"metadata": {"name": "deaf", "namespace": "default"}, "spec": spec})
    return "deaf"


async def no_plugin(on: Bench) -> None:
    await asyncio.sleep(30)


async def dead(on: Bench) -> None:
    await asyncio.sleep(1)
    on.kubelet.plugin.crash()
    await asyncio.sleep(11)


async def dead_for_long(on: Bench) -> None:
    await dead(on)
    await asyncio.sleep(310)


async def restarted_while_dead(on: Bench) -> None:
    await dead(on)
    on.kubelet.restart()
    await asyncio.sleep(15)


async def used_and_unhealthy(on: Bench) -> None:
    await on.add_pod(gpus=1)
    await on.until_ready()
    on.kubelet.plugin.set_health("GPU-spot-1-0", False)
    await asyncio.sleep(11)


async def rebooted(on: Bench) -> None:
    await asyncio.sleep(5)
    on.kubelet.plugin.late_s = math.inf
    on.kubelet.reboot(4)
    await asyncio.sleep(15)


async def without_runtime(on: Bench) -> None:
    await dead_for_long(on)
    on.kubelet.runtime_down()
    await asyncio.sleep(41)


def under(kind: str) -> Callable[[Bench], Awaitable[None]]:
    async def pressed(on: Bench) -> None:
        await asyncio.sleep(1)
        on.kubelet.pressure(kind, True)
        await asyncio.sleep(21)

    return pressed


NODE_CASES: dict[str, Callable[[Bench], Awaitable[None]]] = {
    "no_plugin": no_plugin, "gpu4": no_plugin, "gpu_unhealthy_used": used_and_unhealthy, "plugin_dead": dead,
    "plugin_dead_5min": dead_for_long, "kubelet_restart_plugin_dead": restarted_while_dead, "after_reboot": rebooted,
    "runtime_down": without_runtime, "memory_pressure": under("MemoryPressure"),
    "disk_pressure": under("DiskPressure"),
}  # fmt: skip
NO_PLUGIN = ("no_plugin", "memory_pressure", "disk_pressure")


@pytest.mark.parametrize("case", NODES)
async def test_a_nodes_status_is_the_real_ones(case: str) -> None:
    on = bench()
    if case in NO_PLUGIN:
        on.kubelet.plugin.late_s = math.inf
    async with on.running():
        await NODE_CASES[case](on)
        status = on.nodes.objects[("", "spot-1")]["status"]
    golden = NODES[case]
    assert [status["capacity"].get(GPU), status["allocatable"].get(GPU)] == golden["gpus"]
    conditions = [{k: c[k] for k in ("type", "status", "reason", "message")} for c in status["conditions"]]
    assert conditions == golden["conditions"]
    assert sorted(status["capacity"]) == golden["capacity"]
    assert set(golden["status"]) - set(status) <= {"declaredFeatures"}
    assert POOL.gpus == 4  # as many as the real node's plugin had


def plain(value: Any, key: str = "") -> Any:
    """Without what differs from run to run."""
    if isinstance(value, dict):
        left_out = ("lastTransitionTime", "lastProbeTime", "podIPs", "hostIPs")
        found = {k: plain(v, k) for k, v in value.items() if k not in left_out}
        if isinstance(found.get("conditions"), list):
            found["conditions"] = {
                c["type"]: {k: v for k, v in c.items() if k != "type"}
                for c in found["conditions"]
                if c["type"] != "PodScheduled"
            }
        return found
    if isinstance(value, list):
        return [plain(v) for v in value]
    if key in ("startedAt", "finishedAt", "startTime"):
        return "T"
    if key in ("containerID", "imageID"):
        return "ID" if value else ""
    if key in ("podIP", "hostIP"):
        return "IP"
    if key == "resourceID":
        return "GPU"
    return text(value) if key == "message" else value


def text(message: str) -> str:
    """Without the pod's uid, and without figures of how much memory or disk there was."""
    message = re.sub(r"\([0-9a-f]{8}-[0-9a-f-]{27}\)", "(UID)", message)
    message = re.sub(r"(Threshold quantity: )\w+(, available: )\w+", r"\1N\2N", message)
    return re.sub(r"(was using )\w+(, request is )\w+", r"\1N\2N", message)


def closest(wanted: Json, found: list[Json]) -> str:
    """The version that differs in the fewest fields, and in which."""

    def differing(one: Json) -> list[str]:
        return [f"{k}: {one.get(k)!r} != {wanted.get(k)!r}" for k in {*wanted, *one} if one.get(k) != wanted.get(k)]

    return "\n".join(min((differing(one) for one in found), key=len, default=["no version at all"]))


def timeline(versions: list[tuple[float, Json]]) -> list[list[Any]]:
    """Rows as in ``timelines.json``, from the first container status on."""
    rows: list[list[Any]] = []
    for t, pod in versions:
        status = pod["status"]
        if not status.get("containerStatuses"):
            continue
        ready = next((c for c in status.get("conditions") or () if c["type"] == "Ready"), {"status": "", "reason": ""})
        states = []
        for container in status["containerStatuses"]:
            ((state, about),) = container["state"].items()
            reason = "" if state == "running" else about.get("reason", "")
            states.append([state, reason, container.get("restartCount", 0)])
        row = [
            status["phase"], status.get("reason", ""),
            "Ready" if ready["status"] == "True" else ready.get("reason", ""),
            states, "deletionTimestamp" in pod["metadata"],
        ]  # fmt: skip
        if not rows or rows[-1][1:] != row:
            rows.append([t, *row])
    return rows


async def test_logs_hold_what_the_process_and_the_one_before_it_said() -> None:
    async with bench().running() as on:
        name = await start(on, "crash")
        await on.until(lambda: "terminated" in state(on, name))
        await asyncio.sleep(1)
        assert on.logs.read("default", name, "c", previous=True) == "boom\n"
        stamped = on.logs.read("default", name, "c", timestamps=True)
        assert re.fullmatch(r"2026-11-29T12:00:\d\d\.\d{9}Z boom\n", stamped)
        assert now() < 10
