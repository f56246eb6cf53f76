"""Nodes that go because nothing needs them, because cheaper ones would do, because their pool is another by now, or
because they are old; and what holds that up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from karpenter_bench import Bench, condition, now

from fakes.config import PoolConfig
from harness.kube.port import NODE, NODE_CLAIM, NODE_POOL, POD

pytestmark = pytest.mark.looptime

DEAR = PoolConfig("dear", "on-demand", gpus=8, nodes=1, stock=3, instance_type="gpu.8x", price_per_hour=40)
CHEAP = PoolConfig("cheap", "on-demand", gpus=4, nodes=0, stock=3, instance_type="gpu.4x", price_per_hour=20)
EQUAL = PoolConfig("equal", "on-demand", nodes=3, stock=6, price_per_hour=20)
SPOT = PoolConfig("spot", "spot", nodes=1, stock=3, instance_type="gpu.4x", price_per_hour=9)
CHEAPER_SPOT = PoolConfig("spot2", "spot", gpus=2, stock=3, instance_type="gpu.2x", price_per_hour=4)
WHEN_UNDERUTILIZED: Any = {
    "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s", "budgets": [{"nodes": "100%"}],
}  # fmt: skip
WHEN_EMPTY: Any = {**WHEN_UNDERUTILIZED, "consolidationPolicy": "WhenEmpty"}


async def until_gone(bench: Bench, node: str, within_s: float = 300) -> float:
    return await bench.until(lambda: bench.node(node) is None and bench.claim(node) is None, within_s)


async def test_an_empty_node_goes_after_its_quiet_time_the_next_look_and_a_second_one() -> None:
    async with Bench(EQUAL).running() as bench:
        await bench.until_initialized("equal-1", "equal-2", "equal-3")
        await bench.add_pod("a", node="equal-1")
        await bench.until_running("a")
        began = now()
        await bench.change_pool("equal", disruption=WHEN_EMPTY)
        await bench.until(lambda: condition(bench.claim("equal-2"), "Consolidatable") == ("True", "Consolidatable"))
        assert condition(bench.claim("equal-1"), "Consolidatable") is None  # a pod came to it less than 30 s ago
        await until_gone(bench, "equal-2")
        await until_gone(bench, "equal-3")
        assert 15 <= now() - began <= 50
        await asyncio.sleep(120)
        assert bench.node("equal-1") is not None
        assert condition(bench.claim("equal-1"), "Consolidatable") == ("True", "Consolidatable")
        events = await bench.reasons("equal-2")
        assert "DisruptionTerminating" in events
        tainted = [t for _, _, n in bench.nodes_seen for t in n["spec"].get("taints") or () if "disrupted" in t["key"]]
        assert tainted and all(t == {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"} for t in tainted)
        reasons = {condition(c, "DisruptionReason") for _, _, c in bench.claims_seen}
        assert reasons == {None, ("True", "Empty")}


@pytest.mark.parametrize(
    "budgets, gone",
    [
        pytest.param([{"nodes": "0"}], 0, id="none-may"),
        pytest.param([{"nodes": "34%"}], 2, id="a-percentage-rounds-up"),
        pytest.param([{"nodes": "0", "reasons": ["Underutilized", "Drifted"]}], 3, id="for-other-reasons"),
        pytest.param([{"nodes": "3"}, {"nodes": "1", "reasons": ["Empty"]}], 1, id="the-strictest-counts"),
    ],
)
async def test_budgets(budgets: list[dict[str, object]], gone: int) -> None:
    """By how many go in the first wave: the others follow when those are gone, if they may at all."""
    async with Bench(EQUAL).running() as bench:
        await bench.until_initialized("equal-1", "equal-2", "equal-3")
        await bench.change_pool("equal", disruption={**WHEN_EMPTY, "budgets": budgets})
        await asyncio.sleep(100)
        waves: dict[float, int] = {}
        for t, _, claim in bench.claims_seen:
            if claim["metadata"].get("deletionTimestamp") and condition(claim, "Drained") is None:
                waves.setdefault(round(t), 0)
                waves[round(t)] += 1
        assert max(waves.values(), default=0) >= gone and (gone > 0) is bool(waves)
        first = min(waves, default=0.0)
        names = {
            c["metadata"]["name"]
            for t, _, c in bench.claims_seen
            if c["metadata"].get("deletionTimestamp") and t < first + 1
        }
        assert len(names) == gone
        if not gone:
            assert "DisruptionBlocked" in await bench.reasons("equal")


async def test_pods_that_fit_elsewhere_make_their_node_superfluous() -> None:
    async with Bench(EQUAL).running() as bench:
        await bench.until_initialized("equal-1", "equal-2", "equal-3")
        for n, gpus in ((1, 2), (2, 3), (3, 4)):
            await bench.add_pod(f"p{n}", gpus, node=f"equal-{n}")
        await bench.change_pool("equal", disruption=WHEN_UNDERUTILIZED)
        await asyncio.sleep(200)
        assert len(await bench.names(NODE)) == 3  # 2 + 3 do not fit on one
        await bench.kube.delete(POD, "p2", "default", grace_s=0)
        await bench.add_pod("q", 1, node="equal-2")
        await until_gone(bench, "equal-1")
        assert bench.pod("p1") is None  # evicted; there is no controller here that brings it back
        await asyncio.sleep(200)
        assert set(await bench.names(NODE)) == {"equal-2", "equal-3"}
        assert ("True", "Underutilized") in {condition(c, "DisruptionReason") for _, _, c in bench.claims_seen}


async def test_a_dear_node_is_replaced_by_a_cheaper_one_first() -> None:
    pools = tuple(PoolConfig(**{**_fields(p), "nodepool": "mixed"}) for p in (DEAR, CHEAP))
    async with Bench(*pools).running() as bench:
        await bench.until_initialized("dear-1")
        await bench.add_pod("a", 3, node="dear-1")
        await bench.until_running("a")
        await bench.change_pool("mixed", disruption=WHEN_UNDERUTILIZED)
        await bench.until(lambda: bench.claim("cheap-1") is not None)
        assert bench.claim("dear-1") is not None
        await until_gone(bench, "dear-1")
        ready = next(t for t, _, c in bench.claims_seen if c["metadata"]["name"] == "cheap-1" and _initialized(c))
        evicted = next(
            t for t, _, c in bench.claims_seen
            if c["metadata"]["name"] == "dear-1" and c["metadata"].get("deletionTimestamp")
        )  # fmt: skip
        assert ready <= evicted
        assert {"DisruptionLaunching", "DisruptionWaitingReadiness"} <= set(await bench.reasons("cheap-1"))


async def test_spot_is_not_replaced_by_spot() -> None:
    pools = tuple(PoolConfig(**{**_fields(p), "nodepool": "mixed"}) for p in (SPOT, CHEAPER_SPOT))
    async with Bench(*pools).running() as bench:
        await bench.until_initialized("spot-1")
        await bench.add_pod("a", 1, node="spot-1")
        await bench.change_pool("mixed", disruption=WHEN_UNDERUTILIZED)
        await asyncio.sleep(200)
        assert set(await bench.names(NODE)) == {"spot-1"}
        why = "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
        assert ("Unconsolidatable", why) in await bench.messages("spot-1")


async def test_nothing_is_replaced_by_what_costs_as_much() -> None:
    async with Bench(EQUAL).running() as bench:
        await bench.until_initialized("equal-1", "equal-2", "equal-3")
        for n, gpus in ((1, 4), (2, 4), (3, 4)):
            await bench.add_pod(f"p{n}", gpus, node=f"equal-{n}")
        await bench.change_pool("equal", disruption=WHEN_UNDERUTILIZED)
        await asyncio.sleep(200)
        assert len(await bench.names(NODE)) == 3
        assert ("Unconsolidatable", "Can't replace with a cheaper node") in await bench.messages("equal-1")


async def test_on_demand_is_replaced_by_cheaper_spot_only() -> None:
    """Also where a dearer on-demand type would do: were spot to run short, nothing must come in its place."""
    pools = tuple(PoolConfig(**{**_fields(p), "nodepool": "mixed"}) for p in (DEAR, CHEAP, CHEAPER_SPOT))
    async with Bench(*pools).running() as bench:
        await bench.until_initialized("dear-1")
        await bench.add_pod("a", 2, node="dear-1")
        await bench.until_running("a")
        await bench.change_pool("mixed", disruption=WHEN_UNDERUTILIZED)
        await until_gone(bench, "dear-1")
        assert set(await bench.names(NODE)) == {"spot2-1"}


@pytest.mark.parametrize("kept", ["node", "pod", "pod-for-a-while", "budget"])
async def test_what_protects_a_node(kept: str) -> None:
    async with Bench(EQUAL).running() as bench:
        await bench.until_initialized("equal-1", "equal-2", "equal-3")
        await bench.add_pod("a", 1, node="equal-1")
        await bench.add_pod("full", 4, node="equal-2")
        await bench.add_pod("half", 2, node="equal-3")
        await bench.until_running("a", "full", "half")
        annotation = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}
        match kept:
            case "node":
                await bench.kube.patch(NODE, "equal-1", annotation)
                await bench.kube.patch(NODE, "equal-3", annotation)
            case "pod":
                await bench.kube.patch(POD, "a", annotation, "default")
                await bench.kube.patch(POD, "half", annotation, "default")
            case "pod-for-a-while":
                for name in ("a", "half"):
                    lasting = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "4m"}}}
                    await bench.kube.patch(POD, name, lasting, "default")
            case "budget":
                await bench.add_budget(0)
        await bench.change_pool("equal", disruption=WHEN_UNDERUTILIZED)
        await asyncio.sleep(150)
        assert len(await bench.names(NODE)) == 3
        if kept == "pod-for-a-while":
            await until_gone(bench, "equal-1")
        if kept == "budget":
            said = "Pdb prevents pod evictions (PodDisruptionBudget=[default/llm])"
            assert ("DisruptionBlocked", said) in await bench.messages("equal-1")


async def test_a_claim_of_another_template_has_drifted_and_is_replaced_first() -> None:
    async with Bench(EQUAL).running() as bench:
        await bench.until_initialized("equal-1", "equal-2", "equal-3")
        for n in (1, 2, 3):
            await bench.add_pod(f"p{n}", 4, node=f"equal-{n}")
        await bench.until_running("p1", "p2", "p3")
        labels = {"metadata": {"labels": {"generation": "2"}}}
        await bench.change_pool("equal", template=labels, disruption={"budgets": [{"nodes": "1"}]})
        await bench.until(lambda: condition(bench.claim("equal-1"), "Drifted") == ("True", "NodePoolDrifted"))
        await bench.until(lambda: bench.claim("equal-4") is not None)
        await bench.until_initialized("equal-4")
        node = bench.node("equal-4")
        assert node is not None and node["metadata"]["labels"]["generation"] == "2"
        assert condition(bench.claim("equal-4"), "Drifted") is None
        await bench.until(lambda: sum(bench.node(f"equal-{n}") is None for n in (1, 2, 3)) == 1)
        gone = [t for t, _, c in bench.claims_seen if c["metadata"].get("deletionTimestamp")]
        assert gone[0] >= next(t for t, _, c in bench.claims_seen
                               if c["metadata"]["name"] == "equal-4" and _initialized(c))  # fmt: skip


async def test_requirements_that_no_longer_take_a_node() -> None:
    async with Bench(EQUAL).running() as bench:
        await bench.until_initialized("equal-1")
        zone = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-b"]}]
        await bench.change_pool("equal", template={"spec": {"requirements": zone}})
        await bench.until(lambda: condition(bench.claim("equal-1"), "Drifted") == ("True", "RequirementsDrifted"))


async def test_an_expired_node_goes_whatever_budgets_say() -> None:
    pool = PoolConfig("equal", "on-demand", nodes=0, stock=3)
    async with Bench(pool).running() as bench:
        await bench.change_pool(
            "equal", template={"spec": {"expireAfter": "10m"}}, disruption={"budgets": [{"nodes": "0"}]}
        )
        await bench.add_unschedulable("p")
        await bench.until_initialized("equal-1")
        created = next(t for t, _, c in bench.claims_seen if c["metadata"]["name"] == "equal-1")
        await bench.until(lambda: _is_going(bench, "equal-1"), within_s=700)
        assert now() - created == pytest.approx(600, abs=1.5)


async def test_a_drain_that_ends_by_force() -> None:
    pool = PoolConfig("equal", "on-demand", nodes=0, stock=1)
    async with Bench(pool).running() as bench:
        await bench.change_pool("equal", template={"spec": {"terminationGracePeriod": "5m"}})
        await bench.add_unschedulable("first")
        await bench.until_initialized("equal-1")
        await bench.add_pod("stuck", node="equal-1", terminationGracePeriodSeconds=60)
        await bench.until_running("stuck")
        await bench.add_budget(0)
        began = now()
        await bench.kube.delete(NODE_CLAIM, "equal-1")
        await asyncio.sleep(200)
        stuck = bench.pod("stuck")
        assert stuck is not None
        assert "deletionTimestamp" not in stuck["metadata"]
        await bench.until(lambda: bench.pod("stuck") is None)
        assert 240 <= now() - began <= 262
        await until_gone(bench, "equal-1")
        assert now() - began <= 310


async def test_a_quota_error_is_asked_about_again_until_the_launch_timeout() -> None:
    pool = PoolConfig("equal", "on-demand", nodes=0, stock=3)
    async with Bench(pool).running() as bench:
        bench.cloud.trouble.launch_error["equal"] = "InternalError: please try again"
        await bench.add_unschedulable("p")
        await bench.until(lambda: condition(bench.claim("equal-1"), "Launched") == ("Unknown", "LaunchFailed"))
        await asyncio.sleep(60)
        bench.cloud.trouble.launch_error.clear()
        await bench.until(lambda: condition(bench.claim("equal-1"), "Launched") == ("True", "Launched"), within_s=10)


async def test_a_node_pool_that_people_make_orders_what_its_requirements_take() -> None:
    async with Bench(PoolConfig("equal", "on-demand", nodes=0, stock=3)).running() as bench:
        await bench.change_pool("equal", limits={"nodes": "0"})
        spec = {
            "template": {
                "metadata": {"labels": {"team": "a"}},
                "spec": {
                    "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}],
                    "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
                    "nodeClassRef": {"group": "gpu-harness.dev", "kind": "FakeNodeClass", "name": "default"},
                },
            },
            "limits": {"nvidia.com/gpu": "4"},
        }
        await bench.kube.create(NODE_POOL, {"metadata": {"name": "mine"}, "spec": spec})
        await bench.add_unschedulable("intolerant")
        toleration = {"key": "team", "operator": "Exists"}
        await bench.add_unschedulable("p", tolerations=[toleration])
        await bench.add_unschedulable("over", 4, tolerations=[toleration])
        await bench.until_initialized("equal-1")
        node = bench.node("equal-1")
        assert node is not None
        assert (node["metadata"]["labels"]["karpenter.sh/nodepool"], node["metadata"]["labels"]["team"]) == (
            "mine",
            "a",
        )
        assert [t["key"] for t in node["spec"]["taints"]] == ["team"]
        await asyncio.sleep(60)
        assert len(await bench.names(NODE)) == 1  # 4 GPUs are the limit


def _fields(pool: PoolConfig) -> dict[str, Any]:
    return {name: getattr(pool, name) for name in PoolConfig.__slots__}


def _is_going(bench: Bench, name: str) -> bool:
    claim = bench.claim(name)
    return claim is None or bool(claim["metadata"].get("deletionTimestamp"))


def _initialized(claim: Any) -> bool:
    return condition(claim, "Initialized") == ("True", "Initialized")
