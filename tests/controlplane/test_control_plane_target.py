"""The target as a whole: the fakes around a real control plane, whose autoscaler and scheduler do the work."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fakes.config import PlantedBug
from harness.kube.http import HttpKube
from harness.kube.port import DEPLOYMENT, HPA, NODE_CLAIM, NODE_POOL, POD, POD_GROUP, Invalid, Json
from harness.spec.experiment import load_experiment
from harness.stack.find import Binaries
from harness.targets.base import Connection
from harness.targets.controlplane.target import ControlPlaneTarget
from harness.targets.wanted import Places, Wanted, wanted_by

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "spot-interruption-during-burst.yaml"
NS = "inference"
METRIC = "vllm_num_requests_waiting"


@asynccontextmanager
async def up(
    binaries: Binaries, tmp_path: Path, *bugs: PlantedBug
) -> AsyncIterator[tuple[ControlPlaneTarget, Connection, HttpKube]]:
    wanted = wanted_by(load_experiment(EXPERIMENT), 1)
    config = replace(wanted.config, planted_bugs=frozenset(bugs))
    target = ControlPlaneTarget(Wanted(config, wanted.objects, wanted.selector), binaries, Places(tmp_path, tmp_path))
    try:
        connection = await target.up()
        async with HttpKube(connection.kubeconfig) as kube:
            yield target, connection, kube
    finally:
        await target.down()


async def eventually(look: Callable[[], Awaitable[Any]], wanted: Callable[[Any], bool], deadline_s: float = 60) -> Any:
    seen = None
    try:
        async with asyncio.timeout(deadline_s):
            while not wanted(seen := await look()):
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"last seen: {seen}") from None
    return seen


def conditions(obj: Json) -> dict[str, str]:
    return {c["type"]: c["status"] for c in (obj.get("status") or {}).get("conditions") or ()}


async def test_the_real_autoscaler_reads_our_queues_and_the_real_scheduler_binds_gangs(
    binaries: Binaries, tmp_path: Path
) -> None:
    async with up(binaries, tmp_path) as (target, connection, kube):
        hpa = await eventually(
            lambda: kube.get(HPA, "llm", NS), lambda found: conditions(found).get("ScalingActive") == "True"
        )
        assert hpa["status"]["currentMetrics"][0]["pods"]["metric"]["name"] == METRIC
        # A pod is Ready some seconds before it was first scraped.
        external = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{NS}/{METRIC}"
        await eventually(lambda: kube.raw(external), lambda found: len(found["items"]) == 4)

        async def members() -> list[str]:
            pods = (await kube.list(POD, NS, label_selector="app=gang-a")).items
            return sorted(pod["spec"].get("nodeName", "") for pod in pods)

        await eventually(members, lambda nodes: len(nodes) == 2 and all(nodes))
        await eventually(
            lambda: kube.list(NODE_CLAIM), lambda found: {conditions(c).get("Ready") for c in found.items} == {"True"}
        )
        with pytest.raises(Invalid, match=r"spec\.template\.spec\.nodeClassRef"):
            await kube.create(NODE_POOL, {"metadata": {"name": "wrong"}, "spec": {"template": {"spec": {}}}})
        assert await answered(connection.service_url + "/health") == 200
        assert target.died() is None and set(target.versions) >= {"etcd", "kube-apiserver"}
        await only_the_api_server_may_ask_for_metrics(tmp_path)
        await one_that_dies_is_told(target, tmp_path)
    assert not (tmp_path / "control-plane").exists()


async def only_the_api_server_may_ask_for_metrics(tmp_path: Path) -> None:
    urls = json.loads((tmp_path / "control-plane" / "surroundings-ready.json").read_text())
    with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
        await answered(urls["metrics_url"] + "/apis/custom.metrics.k8s.io/v1beta1")


async def one_that_dies_is_told(target: ControlPlaneTarget, tmp_path: Path) -> None:
    assert target._surroundings is not None
    os.kill(target._surroundings.pid, signal.SIGKILL)
    async with asyncio.timeout(5):
        while (why := target.died()) is None:
            await asyncio.sleep(0.02)
    assert why == "nodes, cloud and gateway was killed by SIGKILL"
    assert target.log == tmp_path / "surroundings.log"


async def answered(url: str) -> int:
    async with aiohttp.ClientSession() as http, http.get(url, ssl=False) as answer:
        return answer.status


async def test_bugs_of_the_scheduler_and_the_autoscaler_are_planted_in_the_real_ones(
    binaries: Binaries, tmp_path: Path
) -> None:
    """A gang larger than what is free is bound in part; an autoscaler below its minimum never moves."""
    async with up(binaries, tmp_path, PlantedBug.GANG_BOUND_ONE_BY_ONE, PlantedBug.HPA_BLIND) as (_, _, kube):
        group = {
            "metadata": {"name": "big", "namespace": NS},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 90}}},
        }
        await kube.create(POD_GROUP, group)
        spec = {"schedulingGroup": {"podGroupName": "big"}, "containers": [{"name": "c", "image": "trainer"}]}
        await kube.create(POD, {"metadata": {"name": "alone", "namespace": NS}, "spec": spec})
        await eventually(lambda: kube.get(POD, "alone", NS), lambda pod: bool(pod["spec"].get("nodeName")))
        await kube.patch(HPA, "llm", {"spec": {"minReplicas": 5}}, NS)
        hpa = await eventually(
            lambda: kube.get(HPA, "llm", NS), lambda found: conditions(found).get("AbleToScale") == "False"
        )
        assert "forbidden" in next(c["message"] for c in hpa["status"]["conditions"] if c["type"] == "AbleToScale")
        assert (await kube.get(DEPLOYMENT, "llm", NS))["spec"]["replicas"] == 4
