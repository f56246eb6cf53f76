"""A drain that a budget holds back goes on asking, and begins with the first pod that may go."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
from faults_ground import add_namespace, add_node, make_ground, make_kube, make_log, stages

from fakes.kube.local import LocalKube
from harness.errors import TargetError
from harness.faults.catalogue.node_drain import RETRY_S, NodeDrain
from harness.faults.fault import NodePick
from harness.faults.life import run_fault
from harness.kube.port import NODE, PDB, POD, NotFound

pytestmark = pytest.mark.looptime
NAMESPACE = "inference"
DRAIN = NodeDrain(after_s=0, hold_s=100, nodes=NodePick(selector="a=b"))


async def _with_a_pod_under_a_budget() -> LocalKube:
    kube = make_kube()
    await add_namespace(kube, NAMESPACE)
    await add_node(kube, "n1")
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    await kube.create(POD, {"metadata": {"name": "p", "labels": {"app": "llm"}}, "spec": spec}, NAMESPACE)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await kube.patch(POD, "p", {"status": ready}, NAMESPACE, subresource="status")
    budget = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "llm"}}}
    await kube.create(PDB, {"metadata": {"name": "b"}, "spec": budget}, NAMESPACE)
    await _allow(kube, 0)
    return kube


async def _allow(kube: LocalKube, disruptions: int) -> None:
    status = {
        "observedGeneration": 1, "disruptionsAllowed": disruptions, "currentHealthy": 1, "desiredHealthy": 1,
        "expectedPods": 1,
    }  # fmt: skip
    await kube.patch(PDB, "b", {"status": status}, NAMESPACE, subresource="status")


async def test_a_pod_that_a_budget_holds_back_is_asked_again_until_it_may_go(tmp_path: Path) -> None:
    kube = await _with_a_pod_under_a_budget()
    async with make_ground(tmp_path, kube) as ground:
        running = asyncio.create_task(run_fault(DRAIN, "node_drain-1", ("n1",), ground, make_log(ground)))
        await asyncio.sleep(ground.clock.clock_s(6 * RETRY_S))
        assert (await kube.get(POD, "p", NAMESPACE))["metadata"].get("deletionTimestamp") is None
        assert stages(tmp_path) == ["planned"], "nothing has gone yet, so it has not begun"
        await _allow(kube, 1)
        result = await running
    assert "1 of 1 pods go" in result.observed
    assert stages(tmp_path)[:3] == ["planned", "injected", "observed"]
    with contextlib.suppress(NotFound):  # nobody keeps it
        assert (await kube.get(POD, "p", NAMESPACE))["metadata"]["deletionTimestamp"]


async def test_one_that_is_never_let_through_ends_with_its_hold_and_is_told_so(tmp_path: Path) -> None:
    kube = await _with_a_pod_under_a_budget()
    async with make_ground(tmp_path, kube, slack_s=0.1) as ground:
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(Exception, match="not seen on n1"):
            await run_fault(DRAIN, "node_drain-1", ("n1",), ground, make_log(ground))
        took_s = ground.clock.scenario_s(round((asyncio.get_running_loop().time() - began_s) * 1e9))
    assert 90 < took_s < 400
    assert (await kube.get(POD, "p", NAMESPACE))["metadata"].get("deletionTimestamp") is None


async def test_a_node_without_pods_is_nothing_to_drain(tmp_path: Path) -> None:
    kube = make_kube()
    await add_namespace(kube, NAMESPACE)
    await add_node(kube, "n1")
    async with make_ground(tmp_path, kube) as ground:
        with pytest.raises(TargetError, match="n1 runs no pod that a drain could move"):
            await run_fault(DRAIN, "node_drain-1", ("n1",), ground, make_log(ground))
    assert "unschedulable" not in (await kube.get(NODE, "n1"))["spec"]
