"""Groups of a leader and its workers in a whole embedded cluster: made, lost and made anew, scaled, updated."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.config import PoolConfig, WorldConfig
from fakes.controllers.informer import Informer
from fakes.vllm.local_door import Switchboard
from fakes.world import World
from harness.kube.port import EVENT, LEADER_WORKER_SET, NAMESPACE, POD, STATEFUL_SET, Json

pytestmark = pytest.mark.looptime

NS = "inference"
PREFIX = "leaderworkerset.sigs.k8s.io/"
POOL = PoolConfig("gpu", "on-demand", gpus=8, nodes=3, stock=3, provision=False)


class Bench:
    """``seen`` is every version of every pod, by the loop's time."""

    def __init__(self) -> None:
        config = WorldConfig(seed=1, time_scale=10, pools=(POOL,))
        self.world = World(config, datetime(2026, 11, 29, 12, tzinfo=UTC), switchboard=Switchboard())
        self.kube = self.world.kube("test")
        self.pods = Informer(self.kube, POD, NS)
        self.seen: list[tuple[float, Json]] = []
        self.pods.on_change(lambda type, new, old: self.seen.append((asyncio.get_running_loop().time(), new)))

    async def apply(self, **spec: Any) -> None:
        template = {
            "metadata": {"labels": {"app": "big"}},
            "spec": {
                "terminationGracePeriodSeconds": 5,
                "containers": [{"name": "c", "image": "busybox:1", "resources": {"limits": {"nvidia.com/gpu": "2"}}}],
            },
        }
        group = {"size": 3, "workerTemplate": template, **spec.pop("group", {})}
        meta = {"name": "big", "namespace": NS}
        await self.kube.create(
            LEADER_WORKER_SET, {"metadata": meta, "spec": {"replicas": 2, "leaderWorkerTemplate": group, **spec}}, NS
        )

    async def change(self, **spec: Any) -> None:
        await self.kube.patch(LEADER_WORKER_SET, "big", {"spec": spec}, NS)

    async def lws(self) -> Json:
        return deepcopy(await self.kube.get(LEADER_WORKER_SET, "big", NS))

    def names(self) -> set[str]:
        return {name for _, name in self.pods.objects}

    def uids(self, group: int) -> dict[str, str]:
        return {
            p["metadata"]["name"]: p["metadata"]["uid"]
            for p in self.pods.values()
            if p["metadata"]["labels"][PREFIX + "group-index"] == str(group)
        }

    async def conditions(self) -> dict[str, str]:
        status = (await self.lws()).get("status") or {}
        return {c["type"]: c["status"] for c in status.get("conditions") or ()}

    async def until(self, holds: Callable[[], Any], within_s: float = 60) -> None:
        async with asyncio.timeout(within_s):
            while not (await found if asyncio.iscoroutine(found := holds()) else found):
                await asyncio.sleep(0.1)

    async def until_available(self) -> None:
        await self.until(self._is_available)

    async def _is_available(self) -> bool:
        return (await self.conditions()).get("Available") == "True"


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Bench]:
    bench = Bench()
    tasks = [asyncio.create_task(bench.world.run()), asyncio.create_task(bench.pods.run())]
    await bench.kube.create(NAMESPACE, {"metadata": {"name": NS}})
    try:
        yield bench
    finally:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result


async def test_groups_with_their_names_labels_and_environment() -> None:
    async with running() as bench:
        await bench.apply()
        await bench.until_available()
        assert bench.names() == {"big-0", "big-1", "big-0-1", "big-0-2", "big-1-1", "big-1-2"}
        sets = {s["metadata"]["name"]: s for s in (await bench.kube.list(STATEFUL_SET, NS)).items}
        assert set(sets) == {"big", "big-0", "big-1"}
        worker = bench.pods.objects[NS, "big-1-2"]
        labels = worker["metadata"]["labels"]
        assert {k.removeprefix(PREFIX): v for k, v in labels.items() if k.startswith(PREFIX)} == {
            "name": "big", "group-index": "1", "worker-index": "2",
            "group-key": bench.pods.objects[NS, "big-1"]["metadata"]["labels"][PREFIX + "group-key"],
            "template-revision-hash": labels[PREFIX + "template-revision-hash"],
        }  # fmt: skip
        env = {e["name"]: e["value"] for e in worker["spec"]["containers"][0]["env"]}
        assert env == {
            "LWS_LEADER_ADDRESS": f"big-1.big.{NS}", "LWS_GROUP_SIZE": "3", "LWS_WORKER_INDEX": "2",
        }  # fmt: skip
        owner = sets["big-1"]["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["name"]) == ("Pod", "big-1")
        status = (await bench.lws())["status"]
        assert (status["replicas"], status["readyReplicas"], status["updatedReplicas"]) == (2, 2, 2)
        assert status["hpaPodSelector"] == f"{PREFIX}name=big,{PREFIX}worker-index=0"
        assert await bench.conditions() == {"Available": "True", "Progressing": "False"}


@pytest.mark.parametrize("how", ["worker-deleted", "container-restarted"])
async def test_a_group_that_loses_a_member_is_made_anew_and_no_other(how: str) -> None:
    async with running() as bench:
        await bench.apply()
        await bench.until_available()
        before, other = bench.uids(1), bench.uids(0)
        if how == "worker-deleted":
            await bench.kube.delete(POD, "big-1-2", NS)
        else:
            node = bench.pods.objects[NS, "big-1-1"]["spec"]["nodeName"]
            bench.world.surroundings.kubelets[node].oom_kill(NS, "big-1-1", "c")
        await bench.until(lambda: len(bench.uids(1)) == 3 and not set(bench.uids(1).values()) & set(before.values()))
        await bench.until_available()
        assert bench.uids(0) == other
        assert set(bench.uids(1)) == {"big-1", "big-1-1", "big-1-2"}
        await asyncio.sleep(30)
        assert bench.uids(0) == other
        said = [e["message"] for e in (await bench.kube.list(EVENT, NS)).items if e["reason"] == "RecreateGroup"]
        assert len(said) == 1
        assert said[0].endswith("failed, deleted leader pod big-1 to recreate group 1")


async def test_with_restart_policy_none_only_the_lost_pod_comes_back() -> None:
    async with running() as bench:
        await bench.apply(group={"restartPolicy": "None"})
        await bench.until_available()
        before = bench.uids(1)
        await bench.kube.delete(POD, "big-1-2", NS)
        await bench.until(lambda: bench.uids(1).get("big-1-2", before["big-1-2"]) != before["big-1-2"])
        await bench.until_available()
        assert {n for n, uid in bench.uids(1).items() if uid == before[n]} == {"big-1", "big-1-1"}


async def test_workers_that_wait_for_their_leader_to_be_ready() -> None:
    async with running() as bench:
        await bench.apply(startupPolicy="LeaderReady")
        await bench.until_available()
        ready: dict[str, float] = {}
        came: dict[str, float] = {}
        for t, pod in bench.seen:
            name = pod["metadata"]["name"]
            came.setdefault(name, t)
            conditions = pod["status"].get("conditions") or ()
            if any((c["type"], c["status"]) == ("Ready", "True") for c in conditions):
                ready.setdefault(name, t)
        assert all(came[f"big-{g}-{w}"] >= ready[f"big-{g}"] for g in (0, 1) for w in (1, 2))


async def test_scale_counts_groups() -> None:
    async with running() as bench:
        await bench.apply()
        await bench.until_available()
        await bench.kube.patch(LEADER_WORKER_SET, "big", {"spec": {"replicas": 3}}, NS, subresource="scale")
        await bench.until(lambda: "big-2-2" in bench.names())
        await bench.until_available()
        await bench.change(replicas=1)
        await bench.until(lambda: bench.names() == {"big-0", "big-0-1", "big-0-2"})
        await bench.until_available()
        assert (await bench.lws())["status"]["replicas"] == 1


async def test_an_update_goes_group_by_group_from_the_last() -> None:
    async with running() as bench:
        await bench.apply()
        await bench.until_available()
        before = bench.uids(0) | bench.uids(1)
        lws = await bench.lws()
        template = lws["spec"]["leaderWorkerTemplate"]
        template["workerTemplate"]["spec"]["containers"][0]["image"] = "busybox:2"
        await bench.change(leaderWorkerTemplate=template)
        await bench.until(lambda: _is(bench, "UpdateInProgress", "True"))
        await bench.until(lambda: not set((bench.uids(0) | bench.uids(1)).values()) & set(before.values()))
        await bench.until_available()
        assert (await bench.conditions())["UpdateInProgress"] == "False"
        assert {p["spec"]["containers"][0]["image"] for p in bench.pods.values()} == {"busybox:2"}
        # While the last group was away or not ready, the first stood.
        first_touched = next(t for t, p in bench.seen if p["metadata"]["name"].startswith("big-0")
                             and p["metadata"].get("deletionTimestamp"))  # fmt: skip
        ready_again = {
            p["metadata"]["name"]: t
            for t, p in reversed(bench.seen)
            if p["metadata"]["name"].startswith("big-1") and p["spec"]["containers"][0]["image"] == "busybox:2"
            and any((c["type"], c["status"]) == ("Ready", "True") for c in p["status"].get("conditions") or ())
        }  # fmt: skip
        assert max(ready_again.values()) <= first_touched


async def test_a_partition_keeps_the_first_groups_as_they_are() -> None:
    async with running() as bench:
        rollout = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"partition": 1, "maxUnavailable": 1}}
        await bench.apply(rolloutStrategy=rollout)
        await bench.until_available()
        before = bench.uids(0)
        template = (await bench.lws())["spec"]["leaderWorkerTemplate"]
        template["workerTemplate"]["spec"]["containers"][0]["image"] = "busybox:2"
        await bench.change(leaderWorkerTemplate=template)
        await bench.until(lambda: {p["spec"]["containers"][0]["image"] for p in bench.pods.values()
                                   if p["metadata"]["name"].startswith("big-1")} == {"busybox:2"})  # fmt: skip
        await asyncio.sleep(30)
        assert bench.uids(0) == before
        assert (await bench.lws())["status"]["updatedReplicas"] == 1


async def _is(bench: Bench, condition: str, status: str) -> bool:
    return (await bench.conditions()).get(condition) == status
