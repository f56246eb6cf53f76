"""The autoscaler on the embedded store."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from controller_cluster import NAMESPACE_NAME, Cluster, deployment, eventually, running

from fakes.config import PlantedBug
from fakes.controllers.deployment import DeploymentController
from fakes.controllers.hpa import HpaController, selector_text
from fakes.controllers.objects import condition_of, name_of
from fakes.controllers.replicaset import ReplicaSetController
from fakes.controllers.scheduler import Scheduler
from fakes.metrics.reader import PodMetric
from fakes.timing import Timing
from harness.kube.port import DEPLOYMENT, EVENT, HPA, Json

METRIC = "vllm_num_requests_waiting"
SCALE = 15.0


class Queues:
    """A MetricsReader: every ready pod reports ``waiting``; None means that nothing is known."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.waiting: float | None = 0.0
        self.asked: list[tuple[str, str, str]] = []

    async def pod_metric(self, namespace: str, selector: str, metric: str) -> list[PodMetric]:
        self.asked.append((namespace, selector, metric))
        if self.waiting is None:
            return []
        pods = await self.cluster.ready_pods(app="llm")
        return [PodMetric(name_of(p), self.waiting, self.cluster.wall.now(), 1.0) for p in pods]


def hpa(low: int = 4, high: int = 7, **spec) -> Json:
    metric = {
        "type": "Pods",
        "pods": {"metric": {"name": METRIC}, "target": {"type": "AverageValue", "averageValue": "2"}},
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "llm", "namespace": NAMESPACE_NAME},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
            "minReplicas": low,
            "maxReplicas": high,
            "metrics": [metric],
            **spec,
        },
    }


def control(cluster: Cluster, queues: Queues, bugs=()):
    timing = Timing(SCALE)
    return (
        DeploymentController(cluster.kube, cluster.wall, Random(0)).run(),
        ReplicaSetController(cluster.kube, cluster.wall, Random(1)).run(),
        Scheduler(cluster.kube, cluster.wall, timing).run(),
        HpaController(cluster.kube, cluster.wall, timing, queues, bugs).run(),
    )


async def start(cluster: Cluster, replicas: int = 4, **spec) -> None:
    await cluster.add_node("n1", 8)
    await cluster.kube.create(DEPLOYMENT, deployment(replicas=replicas), NAMESPACE_NAME)

    async def up() -> bool:
        return len(await cluster.ready_pods(app="llm")) == replicas

    await eventually(up)
    await cluster.kube.create(HPA, hpa(**spec), NAMESPACE_NAME)


async def status_of(cluster: Cluster) -> Json:
    return (await cluster.kube.get(HPA, "llm", NAMESPACE_NAME)).get("status") or {}


async def replicas_of(cluster: Cluster) -> int:
    return (await cluster.kube.get(DEPLOYMENT, "llm", NAMESPACE_NAME))["spec"]["replicas"]


def reasons(status: Json) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in status.get("conditions", [])}


@pytest.mark.looptime
async def test_a_queue_scales_four_to_seven_and_back_after_the_window():
    cluster = Cluster()
    queues = Queues(cluster)
    async with running(cluster, *control(cluster, queues)):
        await start(cluster)
        queues.waiting = 6.0

        async def seven() -> bool:
            return len(await cluster.ready_pods(app="llm")) == 7

        await eventually(seven, 10)
        assert queues.asked[0] == (NAMESPACE_NAME, "app=llm", METRIC)
        events = [
            e for e in (await cluster.kube.list(EVENT, NAMESPACE_NAME)).items if e["reason"] == "SuccessfulRescale"
        ]
        assert [e["message"] for e in events] == [f"New size: 7; reason: pods metric {METRIC} above target"]

        async def settled() -> bool:
            return (await status_of(cluster)).get("currentReplicas") == 7

        await eventually(settled, 10)
        status = await status_of(cluster)
        assert reasons(status)["ScalingActive"] == ("True", "ValidMetricFound")
        assert reasons(status)["ScalingLimited"] == ("True", "TooManyReplicas")
        assert status["currentMetrics"][0]["pods"]["current"]["averageValue"] == "6"
        assert status["lastScaleTime"]
        queues.waiting = 0.0
        loop = asyncio.get_running_loop()
        calm_s = loop.time()

        async def held() -> bool:
            return reasons(await status_of(cluster))["AbleToScale"] == ("True", "ScaleDownStabilized")

        await eventually(held, 5)

        async def four() -> bool:
            return await replicas_of(cluster) == 4

        await eventually(four, 60)
        assert loop.time() - calm_s == pytest.approx(300 / SCALE, abs=2 * 15 / SCALE)
        message = "New size: 4; reason: All metrics below target"
        assert any(e["message"] == message for e in (await cluster.kube.list(EVENT, NAMESPACE_NAME)).items)


@pytest.mark.looptime
async def test_missing_metrics_freeze_the_number():
    cluster = Cluster()
    queues = Queues(cluster)
    queues.waiting = None
    async with running(cluster, *control(cluster, queues)):
        await start(cluster, replicas=6)

        async def seen() -> bool:
            return "ScalingActive" in reasons(await status_of(cluster))

        await eventually(seen, 5)
        await asyncio.sleep(60)
        assert await replicas_of(cluster) == 6
        status = await status_of(cluster)
        assert reasons(status)["ScalingActive"] == ("False", "FailedGetPodsMetric")
        assert status["currentReplicas"] == 6


@pytest.mark.looptime
async def test_bounds_hold_without_metrics():
    cluster = Cluster()
    queues = Queues(cluster)
    queues.waiting = None
    async with running(cluster, *control(cluster, queues)):
        await start(cluster, replicas=2)

        async def raised() -> bool:
            return await replicas_of(cluster) == 4

        await eventually(raised, 5)


@pytest.mark.looptime
async def test_a_target_at_zero_is_left_alone():
    cluster = Cluster()
    queues = Queues(cluster)
    async with running(cluster, *control(cluster, queues)):
        await start(cluster, replicas=0)

        async def disabled() -> bool:
            return reasons(await status_of(cluster)).get("ScalingActive") == ("False", "ScalingDisabled")

        await eventually(disabled, 5)
        assert await replicas_of(cluster) == 0


@pytest.mark.looptime
async def test_a_missing_target_is_reported():
    cluster = Cluster()
    queues = Queues(cluster)
    async with running(cluster, *control(cluster, queues)):
        await cluster.kube.create(HPA, hpa(), NAMESPACE_NAME)

        async def failed() -> bool:
            return reasons(await status_of(cluster)).get("AbleToScale") == ("False", "FailedGetScale")

        await eventually(failed, 5)


@pytest.mark.looptime
async def test_planted_bug_reads_and_never_scales():
    cluster = Cluster()
    queues = Queues(cluster)
    queues.waiting = 50.0
    async with running(cluster, *control(cluster, queues, {PlantedBug.HPA_BLIND})):
        await start(cluster)
        await asyncio.sleep(20)
        status = await status_of(cluster)
        assert condition_of({"status": status}, "ScalingActive")["status"] == "True"
        assert (await replicas_of(cluster), status["desiredReplicas"]) == (4, 4)


def test_selector_text():
    expressions = [
        {"key": "a", "operator": "In", "values": ["2", "1"]},
        {"key": "b", "operator": "DoesNotExist"},
    ]
    assert selector_text({"matchLabels": {"app": "llm"}, "matchExpressions": expressions}) == "app=llm,a in (1,2),!b"
