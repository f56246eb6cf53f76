"""Nodes on their way out: drained through the Eviction API, terminated, or lost at the deadline."""

from __future__ import annotations

import asyncio

import pytest
from karpenter_bench import Bench, condition, now

from fakes.config import PlantedBug
from harness.kube.port import EVENT, NODE, NODE_CLAIM, POD, Resource

pytestmark = pytest.mark.looptime


def taints(bench: Bench, name: str) -> list[str]:
    node = bench.node(name)
    return [t["key"] for t in (node or {}).get("spec", {}).get("taints") or ()]


async def test_a_notice_drains_the_node_and_ends_the_instance_early() -> None:
    async with Bench().running() as bench:
        await bench.add_pod("a", node="spot-1", exit_s=20)
        await bench.add_pod("b", node="spot-1", exit_s=30)
        await bench.until_running("a", "b")
        noticed = now()
        bench.cloud.interrupt("i-spot-1", 120)
        await asyncio.sleep(1)
        claim, node = bench.claim("spot-1"), bench.node("spot-1")
        assert claim is not None
        assert node is not None
        assert "deletionTimestamp" in claim["metadata"]
        assert "deletionTimestamp" in node["metadata"]
        assert taints(bench, "spot-1") == ["karpenter.sh/disrupted"]
        assert condition(claim, "Drained") == ("Unknown", "Draining")
        for name in "ab":
            pod = bench.pod(name)
            assert condition(pod, "DisruptionTarget") == ("True", "EvictionByEvictionAPI")
        await bench.until(lambda: bench.claim("spot-1") is None)
        assert now() - noticed == pytest.approx(31, abs=1)  # the slower pod, and half a second for its object
        assert await bench.names(POD) == await bench.names(NODE) == await bench.names(NODE_CLAIM) == []
        assert (bench.state("spot-1"), bench.cloud.stock("spot")) == ("terminated", 0)
        reasons = await bench.reasons("spot-1")
        assert {"SpotInterrupted", "TerminatingOnInterruption"} <= set(reasons)
        assert reasons.count("SpotInterrupted") == 2  # on the node and on its claim


async def test_a_budget_that_refuses_is_asked_again_until_it_yields() -> None:
    async with Bench().running() as bench:
        await bench.add_pod("a", node="spot-1")
        await bench.add_pod("b", node="spot-1")
        await bench.until_running("a", "b")
        await bench.add_budget(1)
        bench.cloud.interrupt("i-spot-1", 120)
        await asyncio.sleep(40)
        assert len(await bench.names(POD)) == 1  # one went, the other is held back
        refused = next(e for e in (await bench.kube.list(EVENT)).items if e["reason"] == "FailedDraining")
        assert "would violate the pod's disruption budget" in refused["message"]
        assert 7 <= refused["count"] <= 9  # each five seconds
        await bench.allow(1)
        await bench.until(lambda: bench.claim("spot-1") is None)
        assert await bench.names(POD) == []
        assert now() < 120


async def test_a_budget_that_never_yields_ends_at_the_deadline() -> None:
    async with Bench().running() as bench:
        await bench.add_pod("a", node="spot-1")
        await bench.until_running("a")
        await bench.add_budget(0)
        noticed = now()
        bench.cloud.interrupt("i-spot-1", 120)
        gone = await bench.until(lambda: bench.claim("spot-1") is None)
        assert gone - noticed == pytest.approx(120, abs=0.5)
        assert await bench.names(NODE) == ["on-demand-1"]  # ordered at the notice, for the pod that could not leave
        pod = bench.pod("a")
        assert pod is not None
        assert "deletionTimestamp" not in pod["metadata"]  # nobody evicted it; the pod collector will find it
        assert bench.cloud.get("i-spot-1").booted_s is not None


async def test_the_planted_bug_deletes_past_the_budget() -> None:
    bugs = frozenset({PlantedBug.DRAIN_IGNORES_PDB})
    async with Bench(bugs=bugs).running() as bench:
        await bench.add_pod("a", node="spot-1")
        await bench.until_running("a")
        await bench.add_budget(0)
        bench.cloud.interrupt("i-spot-1", 120)
        await asyncio.sleep(1)
        pod = bench.pod("a")
        assert pod is not None
        assert "deletionTimestamp" in pod["metadata"]
        assert condition(pod, "DisruptionTarget") is None


async def test_a_cancelled_interruption_does_not_stop_the_drain() -> None:
    async with Bench().running() as bench:
        await bench.add_pod("a", node="spot-1", exit_s=30)
        await bench.until_running("a")
        bench.cloud.interrupt("i-spot-1", 120)
        await asyncio.sleep(1)
        bench.cloud.cancel_interruption("i-spot-1")
        await bench.until(lambda: bench.claim("spot-1") is None)
        assert (bench.state("spot-1"), bench.cloud.stock("spot")) == ("terminated", 1)


@pytest.mark.parametrize("resource", [NODE_CLAIM, NODE], ids=["claim", "node"])
async def test_whoever_deletes_claim_or_node_gets_a_drain(resource: Resource) -> None:
    async with Bench().running() as bench:
        await bench.add_pod("a", node="spot-1", exit_s=30)
        await bench.until_running("a")
        began = now()
        await bench.kube.delete(resource, "spot-1")
        await bench.until(lambda: bench.claim("spot-1") is None and bench.node("spot-1") is None)
        assert now() - began == pytest.approx(31, abs=1)
        assert bench.state("spot-1") == "terminated"
        assert "SpotInterrupted" not in await bench.reasons("spot-1")


async def test_pods_of_daemon_sets_stay_and_critical_pods_go_last() -> None:
    async with Bench().running() as bench:
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
        await bench.add_pod("daemon", 0, node="spot-1")
        await bench.kube.patch(POD, "daemon", {"metadata": {"ownerReferences": [owner]}}, "default")
        await bench.add_pod("critical", 0, node="spot-1", priorityClassName="system-node-critical")
        await bench.add_pod("plain", node="spot-1", exit_s=30)
        await bench.until_running("daemon", "critical", "plain")
        await bench.kube.delete(NODE_CLAIM, "spot-1")
        await asyncio.sleep(10)
        assert "deletionTimestamp" in (bench.pod("plain") or {})["metadata"]
        assert "deletionTimestamp" not in (bench.pod("critical") or {})["metadata"]
        await bench.until(lambda: bench.claim("spot-1") is None)
        assert "deletionTimestamp" not in (bench.pod("daemon") or {})["metadata"]


async def test_a_claim_deleted_before_its_node_is_there_takes_its_instance_along() -> None:
    async with Bench().running() as bench:
        await bench.fill_spot()
        await bench.add_unschedulable("p")
        await bench.until(lambda: bench.claim("on-demand-1") is not None)
        await bench.kube.delete(POD, "p", "default")
        await bench.kube.delete(NODE_CLAIM, "on-demand-1")
        await bench.until(lambda: bench.claim("on-demand-1") is None)
        assert bench.state("on-demand-1") == "terminated"
        await asyncio.sleep(60)
        assert await bench.names(NODE) == ["spot-1"]


async def test_replacements_are_ordered_when_the_notice_comes_not_when_pods_are_gone() -> None:
    async with Bench().running() as bench:
        for n in range(3):
            await bench.add_pod(f"p{n}", node="spot-1", exit_s=60)
        await bench.until_running("p0", "p1", "p2")
        await bench.add_budget(0)
        noticed = now()
        bench.cloud.interrupt("i-spot-1", 120)
        made = await bench.until(lambda: bench.claim("on-demand-1") is not None)
        assert made - noticed == pytest.approx(1, abs=0.5)
        await asyncio.sleep(110)
        assert len({c["metadata"]["name"] for _, _, c in bench.claims_seen}) == 2


async def test_a_rebalance_recommendation_is_news_and_no_more() -> None:
    async with Bench().running() as bench:
        await bench.until(lambda: bench.claim("spot-1") is not None)
        for listener in bench.cloud.on_rebalance:
            listener(bench.cloud.get("i-spot-1"))
        await asyncio.sleep(60)
        assert "SpotRebalanceRecommendation" in await bench.reasons("spot-1")
        node = bench.node("spot-1")
        assert node is not None
        assert not node["spec"].get("taints")
