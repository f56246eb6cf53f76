"""From pods that fit nowhere to nodes they can run on."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from karpenter_bench import EXACT, GPU, ON_DEMAND, Bench, condition, now

from fakes.config import PoolConfig
from fakes.timing import Spread
from harness.kube.port import EVENT, NODE, NODE_CLAIM, NODE_POOL, POD

pytestmark = pytest.mark.looptime


async def test_initial_nodes_have_claims_that_are_ready() -> None:
    async with Bench().running() as bench:
        claim = bench.claim("spot-1")
        assert claim is not None
        assert {t: condition(claim, t) for t in ("Launched", "Registered", "Initialized", "Ready")} == {
            "Launched": ("True", "Launched"), "Registered": ("True", "Registered"),
            "Initialized": ("True", "Initialized"), "Ready": ("True", "Ready"),
        }  # fmt: skip
        assert claim["status"]["providerID"] == "fake://zone-a/i-spot-1"
        assert claim["status"]["nodeName"] == "spot-1"
        node = bench.node("spot-1")
        assert node is not None
        assert node["metadata"]["finalizers"] == claim["metadata"]["finalizers"] == ["karpenter.sh/termination"]
        assert node["metadata"]["labels"]["karpenter.sh/registered"] == "true"
        assert node["metadata"]["labels"]["karpenter.sh/initialized"] == "true"
        pools = {p["metadata"]["name"]: p["spec"] for p in (await bench.kube.list(NODE_POOL)).items}
        assert {n: (s["weight"], s["limits"][GPU]) for n, s in pools.items()} == {
            "spot": (50, "4"), "on-demand": (10, "12")
        }  # fmt: skip


async def test_a_pool_of_fixed_nodes_is_none_of_karpenters_business() -> None:
    fixed = PoolConfig("fixed", "on-demand", nodes=1, stock=9, provision=False)
    async with Bench(fixed).running() as bench:
        await bench.add_unschedulable("p", 8)
        await asyncio.sleep(60)
        assert await bench.names(NODE_CLAIM) == await bench.names(NODE_POOL) == []
        assert await bench.names(NODE) == ["fixed-1"]
        assert "FailedScheduling" in await bench.reasons("p")


async def test_one_node_is_made_for_pods_that_come_together_and_no_second_meanwhile() -> None:
    async with Bench().running() as bench:
        await bench.fill_spot()
        for n in range(4):
            await bench.add_unschedulable(f"p{n}")
            await asyncio.sleep(0.5)
        made = await bench.until(lambda: bench.claim("on-demand-1") is not None)
        assert made == pytest.approx(2 + 2 + 0.5, abs=0.2)  # a second after the last pod
        await bench.until(lambda: condition(bench.claim("on-demand-1"), "Ready") == ("True", "Ready"))
        assert await bench.names(NODE_CLAIM) == ["on-demand-1", "spot-1"]
        messages = [e["message"] for e in (await bench.kube.list(EVENT)).items if e["reason"] == "Nominated"]
        assert messages.count("Pod should schedule on: nodeclaim/on-demand-1") == 4
        claim = bench.claim("on-demand-1")
        assert claim is not None
        assert claim["spec"]["resources"]["requests"] == {GPU: "4", "pods": "4"}


async def test_the_batch_does_not_wait_for_ever() -> None:
    async with Bench(ON_DEMAND).running() as bench:
        async with asyncio.TaskGroup() as tasks:

            async def keep_coming() -> None:
                for n in range(30):
                    await bench.add_unschedulable(f"p{n}", 0)
                    await asyncio.sleep(0.6)

            tasks.create_task(keep_coming())
            made = await bench.until(lambda: bench.claim("on-demand-1") is not None)
        assert made == pytest.approx(2 + 10, abs=0.3)


async def test_a_claims_conditions_name_what_it_waits_for() -> None:
    async with Bench().running() as bench:
        await bench.fill_spot()
        await bench.add_unschedulable("p")
        await bench.until(lambda: condition(bench.claim("on-demand-1"), "Ready") == ("True", "Ready"))
        seen: list[tuple[str, str]] = []
        for _, _, claim in bench.claims_seen:
            found = condition(claim, "Initialized")
            if claim["metadata"]["name"] == "on-demand-1" and found and found not in seen:
                seen.append(found)
        assert seen == [
            ("Unknown", "AwaitingReconciliation"), ("Unknown", "NodeNotReady"),
            ("Unknown", "KnownEphemeralTaintsExist"), ("Unknown", "ResourceNotRegistered"), ("True", "Initialized"),
        ]  # fmt: skip
        node = bench.node("on-demand-1")
        assert node is not None
        assert not node["spec"].get("taints")
        assert now() == pytest.approx(2 + 1 + 30 + 8 + 12, abs=1)


async def test_a_launch_that_finds_no_capacity_goes_to_the_next_pool() -> None:
    spot = PoolConfig("spot", "spot", nodes=1, stock=2)
    async with Bench(spot, ON_DEMAND).running() as bench:
        bench.cloud.launch("spot", "somebody-elses")  # the cloud's last one
        await bench.fill_spot()
        await bench.add_unschedulable("p")
        await bench.until(lambda: bench.claim("on-demand-1") is not None)
        assert "InsufficientCapacityError" in await bench.reasons("spot-2")
        failed = next(
            c for _, _, c in bench.claims_seen if condition(c, "Launched") not in (None, ("True", "Launched"))
        )
        assert condition(failed, "Launched") == ("False", "InsufficientCapacityError")
        assert condition(failed, "Ready") == ("False", "UnhealthyDependents")
        assert await bench.names(NODE_CLAIM) == ["on-demand-1", "spot-1"]
        tried = {c["metadata"]["name"] for _, _, c in bench.claims_seen}
        await asyncio.sleep(100)
        assert tried == {"spot-1", "spot-2", "on-demand-1"}  # spot is passed over for a while


async def test_limits_are_kept() -> None:
    one = PoolConfig("on-demand", "on-demand", stock=1)
    async with Bench(one).running() as bench:
        for n in range(8):
            await bench.add_unschedulable(f"p{n}")
        await asyncio.sleep(60)
        assert await bench.names(NODE_CLAIM) == ["on-demand-1"]


async def test_a_node_that_never_registers_is_given_up() -> None:
    hangs = replace(EXACT, launch=Spread(2000))
    async with Bench(durations=hangs).running() as bench:
        await bench.fill_spot()
        await bench.add_unschedulable("p")
        await bench.until(lambda: bench.claim("on-demand-1") is not None)
        await bench.kube.delete(POD, "p", "default")
        gone = await bench.until(lambda: bench.claim("on-demand-1") is None, within_s=1000, step_s=5)
        assert gone == pytest.approx(900, abs=10)
        assert bench.state("on-demand-1") == "terminated"


async def test_an_instance_that_never_registers_is_given_up_after_a_quarter_of_an_hour() -> None:
    async with Bench(PoolConfig("on-demand", "on-demand", stock=3)).running() as bench:
        bench.cloud.trouble.never_registers.add("on-demand")
        await bench.add_unschedulable("p")
        await bench.until(lambda: condition(bench.claim("on-demand-1"), "Launched") == ("True", "Launched"))
        made = next(t for t, _, c in bench.claims_seen if c["metadata"]["name"] == "on-demand-1")
        await bench.until(lambda: bench.claim("on-demand-1") is None, within_s=1000)
        bench.cloud.trouble.never_registers.clear()
        assert 899 <= now() - made <= 905
        await bench.until(lambda: bench.claim("on-demand-2") is not None)
        pool = await bench.kube.get(NODE_POOL, "on-demand")
        assert condition(pool, "NodeRegistrationHealthy") == ("False", "RegistrationFailed")
        await bench.until(lambda: condition(bench.claim("on-demand-2"), "Registered") == ("True", "Registered"))
        await asyncio.sleep(1)
        pool = await bench.kube.get(NODE_POOL, "on-demand")
        assert condition(pool, "NodeRegistrationHealthy") == ("True", "NodeRegistrationHealthy")
        assert (pool["status"]["nodes"], pool["status"]["resources"]["nvidia.com/gpu"]) == (1, "4")
        assert condition(pool, "Ready") == ("True", "Ready")
