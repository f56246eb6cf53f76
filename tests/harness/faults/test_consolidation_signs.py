"""Consolidation is seen by Karpenter's own reason: a node that goes for another one shows nothing of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from faults_ground import add_node, make_ground, make_kube

from fakes.kube.local import LocalKube
from harness.faults.catalogue.consolidation import Consolidation
from harness.faults.fault import Strike
from harness.faults.fleet import DISRUPTED_TAINT
from harness.kube.port import EVENT, NODE, NODE_CLAIM


@pytest.fixture
async def kube() -> LocalKube:
    kube = make_kube()
    for name in "ab":
        await add_node(kube, name, **{"karpenter.sh/nodepool": "spot"})
        meta = {"name": name, "labels": {"karpenter.sh/nodepool": "spot"}}
        await kube.create(
            NODE_CLAIM, {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "spec": {}}
        )
    return kube


async def seen(kube: LocalKube, folder: Path, why: str) -> bool:
    fault = Consolidation.model_validate({"after_s": 0, "pool": "spot", "hold_s": 60, "why": why})
    async with make_ground(folder, kube) as ground:
        strike = Strike(fault, ground, "consolidation-1", ("spot",), {"a": "spot", "b": "spot"})
        return bool(await fault.signs(strike))


async def is_tainted(kube: LocalKube, name: str) -> None:
    await kube.patch(NODE, name, {"spec": {"taints": [{"key": DISRUPTED_TAINT, "effect": "NoSchedule"}]}})


async def is_chosen(kube: LocalKube, name: str, reason: str) -> None:
    chosen = [{"type": "DisruptionReason", "status": "True", "reason": reason, "message": reason}]
    await kube.patch(NODE_CLAIM, name, {"status": {"conditions": chosen}}, subresource="status")


@pytest.mark.parametrize("why", ["drift", "underutilised", "empty"])
async def test_a_node_that_another_fault_took_is_none_of_it(kube: LocalKube, tmp_path: Path, why: str) -> None:
    await is_tainted(kube, "a")  # as Karpenter taints any node whose NodeClaim is being deleted
    assert not await seen(kube, tmp_path, why)
    await kube.delete(NODE_CLAIM, "a")
    await kube.delete(NODE, "a")
    assert not await seen(kube, tmp_path, why)


@pytest.mark.parametrize(
    ("why", "reason"), [("drift", "Drifted"), ("underutilised", "Underutilized"), ("empty", "Empty")]
)
async def test_a_node_that_karpenter_chose_for_its_reason_is(
    kube: LocalKube, tmp_path: Path, why: str, reason: str
) -> None:
    await is_tainted(kube, "a")
    await is_chosen(kube, "a", "Drifted" if why != "drift" else "Empty")
    assert not await seen(kube, tmp_path, why)
    await is_chosen(kube, "a", reason)
    assert await seen(kube, tmp_path, why)


async def test_an_empty_node_that_went_between_two_looks_is_told_by_the_event(kube: LocalKube, tmp_path: Path) -> None:
    about = {"kind": "Node", "name": "a", "apiVersion": "v1"}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a.1", "namespace": "default"}}
    event |= {"involvedObject": about, "reason": "DisruptionTerminating", "message": "Disrupting Node: Empty"}
    await kube.create(EVENT, event)
    await kube.delete(NODE_CLAIM, "a")
    await kube.delete(NODE, "a")
    assert await seen(kube, tmp_path, "empty")
    assert not await seen(kube, tmp_path, "drift")


@pytest.mark.looptime
async def test_a_protected_node_is_found_by_its_claim_whatever_that_is_called(tmp_path: Path) -> None:
    """A real provider's node has another name than its NodeClaim."""
    kube = make_kube()
    await add_node(kube, "kwok-a", **{"karpenter.sh/nodepool": "spot"})
    meta = {"name": "spot-x7", "labels": {"karpenter.sh/nodepool": "spot"}}
    await kube.create(NODE_CLAIM, {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "spec": {}})
    drifted = {"nodeName": "kwok-a", "conditions": [{"type": "Drifted", "status": "True"}]}
    await kube.patch(NODE_CLAIM, "spot-x7", {"status": drifted}, subresource="status")
    fault = Consolidation.model_validate({"after_s": 0, "pool": "spot", "hold_s": 60, "why": "drift", "protect": "all"})
    async with make_ground(tmp_path, kube) as ground:
        strike = Strike(fault, ground, "consolidation-1", ("spot",), {"kwok-a": "spot"})
        assert not await fault.signs(strike), "not yet for long enough"
        await asyncio.sleep(50)
        assert "kwok-a are Drifted and stay" in (await fault.signs(strike))["spot"]


@pytest.mark.parametrize(
    ("budget", "protect", "can"),
    [("0", "none", False), ("0%", "none", False), ("0", "all", True), ("10%", "none", True)],
)
def test_a_budget_of_no_node_is_refused(budget: str, protect: str, can: bool) -> None:
    fault = Consolidation.model_validate(
        {"after_s": 0, "pool": "spot", "hold_s": 60, "budget": budget, "protect": protect}
    )
    assert (fault.cannot_on("embedded") is None) is can
