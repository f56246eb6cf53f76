"""Plays one scenario on one side, from an empty namespace to the end of its script."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from bothsides.hollow import NodeSpec
from bothsides.recording import Recorder, Seen
from bothsides.stage import Answer, Scenario, Stage

from harness.kube.port import NAMESPACE, NODE, POD, REPLICA_SET, SERVICE_ACCOUNT, Json, PatchType

ROOM = tuple(NodeSpec(f"room-{n}", gpus=64, cpu=256, memory_gib=1024) for n in (1, 2, 3))
"""For scenarios that bring no nodes of their own."""
LEAD_S = 0.3
WAKE_S = 0.05


@dataclass(frozen=True, slots=True)
class Played:
    seen: tuple[Seen, ...]
    answers: tuple[Answer, ...]
    ended_s: float
    namespace: str
    late_s: float
    """How late our own process woke at worst: by so much everything on this machine may have been late."""


class Lateness:
    """Wakes often and keeps how late it was at worst."""

    def __init__(self) -> None:
        self.worst_s = 0.0

    async def run(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            due_s = clock() + WAKE_S
            await asyncio.sleep(WAKE_S)
            self.worst_s = max(self.worst_s, clock() - due_s)


async def play(scenario: Scenario, stage: Stage, *, nodes_there: bool = False) -> Played:
    """``nodes_there``: somebody else keeps the shared nodes."""
    await stage.kube.create(NAMESPACE, {"metadata": {"name": stage.namespace}})
    await stage.until(lambda: _has_account(stage))
    specs = scenario.nodes or ROOM
    if not nodes_there:
        for spec in specs:
            stage.nodes.start(spec)
            await nodes_usable(stage, (spec,))  # one by one: the same order of creation everywhere
    # ReplicaSets and pods always, for the names in what others say of them.
    recorder = Recorder(stage.kube, {**dict.fromkeys(scenario.looks), REPLICA_SET: None, POD: None}, stage.namespace)
    recording = asyncio.create_task(recorder.run())
    lateness = Lateness()
    waking = asyncio.create_task(lateness.run())
    try:
        await recorder.synced()
        await asyncio.sleep(LEAD_S)
        recorder.begin()
        stage.began_s = asyncio.get_running_loop().time()
        await scenario.script(stage)
        return Played(tuple(recorder.seen), tuple(stage.answers), stage.now_s(), stage.namespace, lateness.worst_s)
    finally:
        waking.cancel()
        recording.cancel()


async def nodes_usable(stage: Stage, specs: Iterable[NodeSpec]) -> None:
    """Until the controller has taken the taint of a new node away; then the scenario's own labels and taints go on."""
    for spec in specs:
        await stage.until(lambda name=spec.name: _is_usable(stage, name))
        patch: Json = {}
        if spec.labels:
            patch["metadata"] = {"labels": spec.labels}
        if spec.taints:
            patch["spec"] = {"taints": list(spec.taints)}
        if patch:
            await stage.kube.patch(NODE, spec.name, patch, type=PatchType.MERGE)


async def _has_account(stage: Stage) -> bool:
    """Pods are refused in a namespace that has no default ServiceAccount yet."""
    return bool((await stage.kube.list(SERVICE_ACCOUNT, stage.namespace)).items)


async def _is_usable(stage: Stage, name: str) -> bool:
    found = {n["metadata"]["name"]: n for n in (await stage.kube.list(NODE)).items}
    node = found.get(name)
    if node is None or node["spec"].get("taints"):
        return False
    conditions = node["status"].get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
