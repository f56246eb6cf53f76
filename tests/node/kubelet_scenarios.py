"""What a kubelet and a control plane do against expectation, as steps that run on real nodes and on hollow ones alike.

Each returns what was seen, by name: seconds since the deed, or words. Nodes are ``gpu-1`` to ``gpu-3`` (two GPUs each)
and ``cpu-1``, the time scale is 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Protocol

from harness.kube.port import NODE, POD, Json, Kube, NotFound

Seen = Mapping[str, float | str]
GPU = "nvidia.com/gpu"
IMAGE = "localhost/gpu-harness:1"
NAMESPACE = "default"
SERVES = "trap 'exit 0' TERM; while true; do sleep 0.2; done"
"""A hard eviction gives it a second."""
LOOK_S = 0.2
NOEXECUTE = ("node.kubernetes.io/unreachable", "NoExecute")


class Side(Protocol):
    """A cluster with nodes, real ones or hollow ones. ``turn`` takes the knobs of the faults."""

    kube: Kube

    async def turn(self, knob: str, node: str, value: Any) -> None: ...

    async def reboot_without_plugin(self, node: str) -> None:
        """Its power goes and comes back; its device plugin does not, until ``device.plugin`` is turned back."""
        ...


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def seconds_until(holds: Callable[[], Awaitable[bool]], within_s: float) -> float | str:
    """Since now."""
    began_s = now_s()
    while not await holds():
        if now_s() - began_s > within_s:
            return f"not within {within_s:g} s"
        await asyncio.sleep(LOOK_S)
    return round(now_s() - began_s, 1)


async def amount(side: Side, node: str, kind: str = "allocatable") -> str:
    status = (await side.kube.get(NODE, node))["status"]
    return str((status.get(kind) or {}).get(GPU, "no key"))


async def is_ready(side: Side, node: str) -> str:
    conditions = (await side.kube.get(NODE, node))["status"].get("conditions") or ()
    return str(next((c["status"] for c in conditions if c["type"] == "Ready"), "absent"))


async def condition(side: Side, node: str, type: str) -> str:
    conditions = (await side.kube.get(NODE, node))["status"].get("conditions") or ()
    return str(next((c["status"] for c in conditions if c["type"] == type), "absent"))


async def run_pod(side: Side, name: str, node: str, *, gpus: int = 0, grace_s: int = 2) -> None:
    container: Json = {
        "name": "c", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", SERVES],
    }  # fmt: skip
    if gpus:
        container["resources"] = {"limits": {GPU: str(gpus)}}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": grace_s, "containers": [container]}
    spec["tolerations"] = [{"operator": "Exists"}]
    meta = {"name": name, "namespace": NAMESPACE}
    await side.kube.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}, NAMESPACE)


async def status_of(side: Side, name: str) -> Json | None:
    try:
        return dict((await side.kube.get(POD, name, NAMESPACE)).get("status") or {})
    except NotFound:
        return None


async def phase(side: Side, name: str) -> str:
    status = await status_of(side, name)
    return "gone" if status is None else str(status.get("phase"))


async def until_phase(side: Side, name: str, wanted: str, within_s: float = 90.0) -> float | str:
    async def there() -> bool:
        return await phase(side, name) == wanted

    return await seconds_until(there, within_s)


async def until_amount(side: Side, node: str, wanted: str, within_s: float, kind: str = "allocatable") -> float | str:
    async def there() -> bool:
        return await amount(side, node, kind) == wanted

    return await seconds_until(there, within_s)


# The scenarios.


async def plugin_gone(side: Side) -> Seen:
    """Five minutes and more, beside the others."""
    await side.turn("device.plugin", "gpu-3", "down")
    began_s = now_s()
    zero = await until_amount(side, "gpu-3", "0", 20)
    kept = await amount(side, "gpu-3", "capacity")
    await until_amount(side, "gpu-3", "0", 330, "capacity")
    took_s = round(now_s() - began_s, 1)
    return {
        "plugin gone: allocatable 0 after": zero,
        "plugin gone: capacity meanwhile": kept,
        "plugin gone: capacity 0 after": took_s,
        "plugin gone: its key then": await amount(side, "gpu-3", "capacity"),
    }


async def absent_key(side: Side) -> Seen:
    return {
        "no plugin ever: capacity": await amount(side, "cpu-1", "capacity"),
        "no plugin ever: allocatable": await amount(side, "cpu-1"),
    }


async def health(side: Side) -> Seen:
    await side.turn("device.unhealthy", "gpu-1", 1)
    ill = await until_amount(side, "gpu-1", "1", 20)
    await side.turn("device.unhealthy", "gpu-1", None)
    return {
        "a device unhealthy: allocatable follows after": ill,
        "healthy again: allocatable follows after": await until_amount(side, "gpu-1", "2", 20),
    }


async def hanging_allocate(side: Side) -> Seen:
    await run_pod(side, "leaves", "gpu-1")
    await until_phase(side, "leaves", "Running")
    await side.turn("device.allocate_s", "gpu-1", 30)
    await run_pod(side, "gpu-pod", "gpu-1", gpus=1)
    await asyncio.sleep(2)
    await run_pod(side, "plain-pod", "gpu-1")
    await side.kube.delete(POD, "leaves", NAMESPACE)
    await asyncio.sleep(20)
    meanwhile = {
        "Allocate hangs for 30 s: node is Ready after 22 s": await is_ready(side, "gpu-1"),
        "Allocate hangs for 30 s: a pod without GPUs after 22 s": await phase(side, "plain-pod"),
        "Allocate hangs for 30 s: a deleted pod after 22 s": await phase(side, "leaves"),
    }
    freed = await until_phase(side, "leaves", "gone", 40), await until_phase(side, "plain-pod", "Running", 40)
    await side.turn("device.allocate_s", "gpu-1", None)
    return meanwhile | {
        "Allocate hangs for 30 s: the deleted pod is gone, s later": freed[0],
        "Allocate hangs for 30 s: the pod without GPUs runs, s after that": freed[1],
    }


async def evicted_with_0(side: Side) -> Seen:
    await run_pod(side, "evicted", "gpu-2", grace_s=30)
    await until_phase(side, "evicted", "Running")
    began_s = now_s()
    await side.turn("node.pressure", "gpu-2", "memory")

    async def pressed() -> bool:
        return await condition(side, "gpu-2", "MemoryPressure") == "True"

    async def over() -> bool:
        return await phase(side, "evicted") in ("Succeeded", "Failed")

    await seconds_until(
        pressed, 40
    )  # a real kubelet was started anew for it and looks at once, a hollow one at its tick
    shown, ended = await condition(side, "gpu-2", "MemoryPressure"), await seconds_until(over, 60)
    took_s = ended if isinstance(ended, str) else round(now_s() - began_s, 1)
    status = await status_of(side, "evicted") or {}
    target = next((c for c in status.get("conditions") or () if c["type"] == "DisruptionTarget"), {})
    await side.turn("node.pressure", "gpu-2", None)
    return {
        "evicted, exits 0: MemoryPressure": shown,
        "evicted, exits 0: over after": took_s,
        "evicted, exits 0: phase": str(status.get("phase")),
        "evicted, exits 0: reason": str(status.get("reason", "none")),
        "evicted, exits 0: DisruptionTarget": str(target.get("reason", "none")),
    }


async def reboot(side: Side) -> Seen:
    for name, gpus in (("gpu-before", 1), ("plain-before", 0)):
        await run_pod(side, name, "gpu-1", gpus=gpus)
        await until_phase(side, name, "Running")
    await side.reboot_without_plugin("gpu-1")

    async def refused() -> bool:
        return await phase(side, "gpu-before") == "Failed"

    async def again() -> bool:
        statuses = ((await status_of(side, "plain-before")) or {}).get("containerStatuses") or [{}]
        return bool(statuses[0].get("restartCount")) and "running" in (statuses[0].get("state") or {})

    failed, back = await seconds_until(refused, 60), await seconds_until(again, 60)
    reason = str(((await status_of(side, "gpu-before")) or {}).get("reason", "none"))
    await side.turn("device.plugin", "gpu-1", None)
    await until_amount(side, "gpu-1", "2", 60)
    await asyncio.sleep(5)
    said = "seen" if isinstance(failed, float) and isinstance(back, float) else f"{failed}; {back}"
    return {
        "reboot, plugin late: both outcomes": said,
        "reboot, plugin late: the GPU pod": f"{await phase(side, 'gpu-before')} ({reason})",
        "reboot, plugin late: the pod without": await phase(side, "plain-before"),
    }


async def _tainted(side: Side) -> list[str]:
    nodes = (await side.kube.list(NODE)).items
    return [n["metadata"]["name"] for n in nodes
            if any((t["key"], t["effect"]) == NOEXECUTE for t in n["spec"].get("taints") or ())]  # fmt: skip


async def one_by_one(side: Side) -> Seen:
    for node in ("gpu-1", "gpu-2"):
        await side.turn("node.kubelet", node, "silent")

    def at_least(count: int) -> Callable[[], Awaitable[bool]]:
        async def there() -> bool:
            return len(await _tainted(side)) >= count

        return there

    first, second = await seconds_until(at_least(1), 90), await seconds_until(at_least(2), 40)
    for node in ("gpu-1", "gpu-2"):
        await side.turn("node.kubelet", node, None)
    return {
        "two of four silent: NoExecute on the first after": first,
        "two of four silent: on the second, s after that": second,
    }


async def all_down(side: Side) -> Seen:
    names = ("gpu-1", "gpu-2", "gpu-3", "cpu-1")

    async def well() -> bool:
        return not await _tainted(side) and all([await is_ready(side, name) == "True" for name in names])

    async def all_unknown() -> bool:
        return all([await is_ready(side, name) == "Unknown" for name in names])

    await seconds_until(well, 60)
    for name in names:
        await side.turn("node.kubelet", name, "silent")
    unknown = await seconds_until(all_unknown, 90)
    await asyncio.sleep(25)
    left = len(await _tainted(side))
    for name in names:
        await side.turn("node.kubelet", name, None)
    return {
        "all four silent: Ready is Unknown on all after": unknown,
        "all four silent: nodes with NoExecute 25 s later": str(left),
    }


SCENARIOS = {
    scenario.__name__.replace("_", "-"): scenario
    for scenario in (absent_key, health, hanging_allocate, evicted_with_0, reboot, one_by_one, plugin_gone, all_down)
}


async def play(side: Side, only: Collection[str] = ()) -> dict[str, float | str]:
    """All of them, or those named; the one of five minutes beside the others but the last."""
    chosen = [scenario for name, scenario in SCENARIOS.items() if not only or name in only]
    beside = asyncio.create_task(plugin_gone(side)) if plugin_gone in chosen else None
    found: dict[str, float | str] = {}
    for scenario in chosen:
        if scenario is not plugin_gone:
            found |= await scenario(side)
        elif beside is not None:
            found |= await beside
    return found
