from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest
from faults_ground import (
    ScriptedCloud,
    add_node,
    cloud_server,
    events,
    inject,
    make_ground,
    make_kube,
    make_log,
    stages,
)

from fakes.kube.local import LocalKube
from harness.errors import GuardRefused, TargetError
from harness.faults.catalogue.spot_interruption import SpotInterruption
from harness.faults.fault import NodePick
from harness.faults.heal import heal_pending
from harness.faults.life import run_fault
from harness.faults.pick import FleetNode
from harness.faults.port import Ground, NotObserved
from harness.faults.scene import Scene
from harness.kube.port import NODE, NODE_CLAIM

ID = "spot_interruption-1"


def spot(selector: str, count: int) -> SpotInterruption:
    return SpotInterruption(after_s=0, nodes=NodePick(selector=selector, count=count), notice_s=120)


FAULT = spot("pool=spot", 1)
Reaction = Callable[[LocalKube, str], Coroutine[Any, Any, None]]


@pytest.fixture
async def cloud() -> AsyncIterator[ScriptedCloud]:
    async with cloud_server() as server:
        server.add("spot-1")
        server.add("spot-2")
        yield server


@pytest.fixture
async def kube() -> LocalKube:
    kube = make_kube()
    for name in ("spot-1", "spot-2"):
        await add_node(kube, name, pool="spot")
    return kube


@pytest.fixture
async def ground(tmp_path: Path, kube: LocalKube, cloud: ScriptedCloud) -> AsyncIterator[Ground]:
    async with make_ground(tmp_path, kube, cloud.url) as ground:
        yield ground


async def taint(kube: LocalKube, name: str) -> None:
    await kube.patch(NODE, name, {"spec": {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}})


async def delete_claim(kube: LocalKube, name: str) -> None:
    meta = {"name": name, "finalizers": ["karpenter.sh/termination"]}
    await kube.create(NODE_CLAIM, {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "spec": {}})
    await kube.delete(NODE_CLAIM, name)


async def delete_node(kube: LocalKube, name: str) -> None:
    await kube.delete(NODE, name)


async def later_taint(kube: LocalKube, name: str) -> None:
    await asyncio.sleep(0.3)
    await taint(kube, name)


def reacts(cloud: ScriptedCloud, kube: LocalKube, reaction: Reaction) -> list[asyncio.Task[None]]:
    """Plays ``reaction`` on a notice, and takes the Node away when the instance is lost."""
    tasks: list[asyncio.Task[None]] = []

    async def play(name: str) -> None:
        await reaction(kube, name)
        while cloud.instances[f"i-{name}"] != "terminated":
            await asyncio.sleep(0.01)
        if reaction is not delete_node:
            await delete_node(kube, name)

    cloud.on_notice = lambda name: tasks.append(asyncio.create_task(play(name)))
    return tasks


async def lose_when_observed(cloud: ScriptedCloud, run_dir: Path) -> None:
    while "observed" not in stages(run_dir):
        await asyncio.sleep(0.01)
    for instance, state in cloud.instances.items():
        if state == "interrupting":
            cloud.instances[instance] = "terminated"


@pytest.mark.parametrize(
    ("reaction", "sign"),
    [
        (taint, "spot-1: taint karpenter.sh/disrupted"),
        (later_taint, "spot-1: taint karpenter.sh/disrupted"),
        (delete_claim, "spot-1: its NodeClaim is being deleted"),
        (delete_node, "spot-1: the Node is gone"),
    ],
)
async def test_it_is_observed_by_the_clusters_reaction_and_ends_with_the_node(
    reaction: Reaction, sign: str, ground: Ground, kube: LocalKube, cloud: ScriptedCloud, tmp_path: Path
) -> None:
    tasks = reacts(cloud, kube, reaction)
    losing = asyncio.create_task(lose_when_observed(cloud, tmp_path))
    result = await run_fault(FAULT, ID, ("spot-1",), ground, make_log(ground))
    await asyncio.gather(losing, *tasks)
    assert (result.observed, result.ended) == (sign, "spot-1: the Node is gone")
    assert stages(tmp_path) == ["planned", "injected", "observed", "ended"]
    assert {(e["fidelity"], e["disruptive"], *e["targets"]) for e in events(tmp_path)} == {("emulated", True, "spot-1")}
    assert cloud.instances["i-spot-2"] == "running"


async def test_a_notice_without_effect_is_not_observed_and_healed(
    kube: LocalKube, cloud: ScriptedCloud, tmp_path: Path
) -> None:
    async with make_ground(tmp_path, kube, cloud.url, slack_s=0.2) as ground:
        with pytest.raises(NotObserved, match="not seen on spot-1: expected that the node gets the taint"):
            await run_fault(FAULT, ID, ("spot-1",), ground, make_log(ground))
        report = await heal_pending(ground, make_log(ground))
    assert report.clean and report.planned == 1
    assert stages(tmp_path) == ["planned", "injected", "not_observed", "healing", "healed"]
    assert cloud.instances["i-spot-1"] == "running"


async def test_a_node_that_outlives_its_notice_ends_the_wait_and_is_named(
    kube: LocalKube, cloud: ScriptedCloud, tmp_path: Path
) -> None:
    tasks: list[asyncio.Task[None]] = []
    cloud.on_notice = lambda name: tasks.append(asyncio.create_task(taint(kube, name)))
    async with make_ground(tmp_path, kube, cloud.url, slack_s=0.5) as ground:
        result = await run_fault(FAULT, ID, ("spot-1",), ground, make_log(ground))
    assert result.ended is not None and "the Node is still there: spot-1" in result.ended
    assert stages(tmp_path)[-1] == "ended"


@pytest.mark.parametrize("answer", [200, 404, 409])
async def test_heal_is_idempotent_and_tolerates_what_is_gone(
    answer: int, ground: Ground, cloud: ScriptedCloud, tmp_path: Path
) -> None:
    await inject(FAULT, ground, ID, ("spot-1",))
    if answer != 200:
        cloud.refuse["DELETE"] = answer
    first = await heal_pending(ground, make_log(ground))
    second = await heal_pending(ground, make_log(ground))
    assert first == second and first.clean and len(first.undone) == 1
    assert cloud.calls == ["POST i-spot-1", "DELETE i-spot-1"]
    assert stages(tmp_path) == ["healing", "healed"]


async def test_what_could_not_be_healed_is_left_and_healed_the_next_time(
    ground: Ground, cloud: ScriptedCloud, tmp_path: Path
) -> None:
    await inject(FAULT, ground, ID, ("spot-1",))
    cloud.refuse["DELETE"] = 500
    report = await heal_pending(ground, make_log(ground))
    assert len(report.left) == 1 and "HTTP 500" in report.errors[0]
    cloud.refuse.clear()
    assert (await heal_pending(ground, make_log(ground))).clean
    assert stages(tmp_path) == ["healing", "failed", "healing", "healed"]


async def test_the_undo_is_on_disk_before_the_cloud_hears_of_it(ground: Ground, cloud: ScriptedCloud) -> None:
    seen: list[int] = []
    cloud.on_notice = lambda name: seen.append(len(ground.undo.replay().pending))
    await inject(FAULT, ground, ID, ("spot-1",))
    assert seen == [1]


async def test_a_refused_second_notice_leaves_both_to_heal(
    ground: Ground, cloud: ScriptedCloud, tmp_path: Path
) -> None:
    cloud.refuse["POST i-spot-2"] = 409
    fault = spot("pool=spot", 2)
    with pytest.raises(TargetError, match="refused to interrupt i-spot-2: HTTP 409"):
        await run_fault(fault, ID, ("spot-1", "spot-2"), ground, make_log(ground))
    assert stages(tmp_path) == ["planned", "failed"]
    assert (await heal_pending(ground, None)).clean
    assert sorted(cloud.calls[2:]) == ["DELETE i-spot-1", "DELETE i-spot-2"]


async def test_a_target_that_does_not_fit_is_refused_before_anything_is_touched(
    ground: Ground, kube: LocalKube, cloud: ScriptedCloud
) -> None:
    await add_node(kube, "stray")
    await taint(kube, "spot-2")
    both = spot("!nothing", 2)
    for targets, said in (
        (("spot-1", "gone"), "node gone is not there"),
        (("spot-1", "stray"), "knows no instance for node stray"),
        (("spot-1", "spot-2"), "spot-2 is leaving already"),
    ):
        with pytest.raises(TargetError, match=said):
            await inject(both, ground, ID, targets)
    cloud.instances["i-spot-1"] = "terminated"
    with pytest.raises(TargetError, match="is terminated, not running"):
        await inject(FAULT, ground, ID, ("spot-1",))
    assert (cloud.calls, ground.undo.replay().entries) == ([], ())


async def test_without_a_cloud_there_is_nothing_to_interrupt(tmp_path: Path, kube: LocalKube) -> None:
    async with make_ground(tmp_path, kube) as ground:
        with pytest.raises(GuardRefused, match="has no emulated part"):
            await inject(FAULT, ground, ID, ("spot-1",))


def test_pick_is_seeded() -> None:
    fleet = [FleetNode(f"spot-{n}", {"pool": "spot"}) for n in range(9)]
    assert FAULT.pick(Scene(fleet), Random("1:a")) == FAULT.pick(Scene(fleet[::-1]), Random("1:a"))
