"""Autoscaling on CPU and memory: the arithmetic of shares and amounts, and which samples count."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from fakes.clock import WallClock
from fakes.controllers.hpa_resource import ResourceProposal, ResourceSource
from fakes.controllers.scaling import MetricsMissing, Tolerances
from fakes.timing import Timing
from harness.kube.port import Json

pytestmark = pytest.mark.looptime
NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
LONG_AGO, JUST_NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:59:50Z"


class Api:
    group = "metrics.k8s.io"

    def __init__(self, cpu: Mapping[str, str]) -> None:
        self._cpu = cpu

    async def handle(self, path: str, query: Mapping[str, str]) -> tuple[int, Json]:
        assert (path, query) == ("namespaces/ns/pods", {"labelSelector": "app=a"})
        items = [
            {
                "metadata": {"name": name},
                "timestamp": "2026-01-01T00:59:55Z",
                "window": "15s",
                "containers": [{"name": "c", "usage": {"cpu": value, "memory": "100Mi"}}],
            }
            for name, value in self._cpu.items()
        ]
        return 200, {"items": items}


def pod(name: str, *, phase: str = "Running", ready: str = "True", started: str = LONG_AGO, request: str = "1") -> Json:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": started}
    requests = {"cpu": request} if request else {}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]},
        "status": {"phase": phase, "startTime": started, "conditions": [condition]},
    }


async def proposed(spec: Json, cpu: Mapping[str, str], *pods: Json, replicas: int = 0) -> ResourceProposal:
    source = ResourceSource(Api(cpu), WallClock(NOW), Timing())
    return await source.propose("ns", {"name": "cpu"} | spec, "app=a", pods, replicas or len(pods), Tolerances())


HALF: Json = {"target": {"type": "Utilization", "averageUtilization": 50}}


async def test_a_share_of_what_the_pods_ask_for() -> None:
    found = await proposed(HALF, {"a": "900m", "b": "700m"}, pod("a"), pod("b"))
    assert found == ResourceProposal(4, 800, 80), "80 % of two cores against 50 %: 1.6 times two, rounded up"
    assert found.current() == {"averageUtilization": 80, "averageValue": "800m"}
    assert (await proposed(HALF, {"a": "520m", "b": "0"}, pod("a"), pod("b", request="10m"))).percent == 51
    within = await proposed(HALF, {"a": "540m", "b": "540m"}, pod("a"), pod("b"))
    assert within.replicas == 2, "within the tolerance"


async def test_an_amount_per_pod_whatever_they_ask_for() -> None:
    spec: Json = {"target": {"type": "AverageValue", "averageValue": "200m"}}
    found = await proposed(spec, {"a": "900m", "b": "700m"}, pod("a", request=""), pod("b", request=""))
    assert (found.replicas, found.average_milli, found.percent) == (8, 800, None)


async def test_what_starting_costs_is_no_load() -> None:
    starting = pod("b", ready="False", started=JUST_NOW)
    found = await proposed(HALF, {"a": "900m", "b": "2"}, pod("a"), starting)
    assert (found.replicas, found.percent) == (2, 90), "an unready pod counts as idle where there is much load"
    ready = pod("b", started=JUST_NOW)
    found = await proposed(HALF, {"a": "900m", "b": "2"}, pod("a"), ready)
    assert found.percent == 90, "ready for less than a window: its sample is of the time before"
    with pytest.raises(MetricsMissing, match="did not receive metrics for targeted pods"):
        await proposed(HALF, {"b": "2"}, starting)


async def test_a_pod_without_a_sample_damps_the_change() -> None:
    found = await proposed(HALF, {"a": "100m"}, pod("a"), pod("b"))
    assert found.replicas == 2, "it counts as using all it asks for where there is little load"
    found = await proposed(HALF, {"a": "900m"}, pod("a"), pod("b"), pod("c"), replicas=3)
    assert found.replicas == 3, "and as idle where there is much"


@pytest.mark.parametrize(
    ("spec", "pods", "why"),
    [
        (HALF, [pod("a", request="")], "missing request for cpu in container c of Pod a"),
        (HALF | {"container": "x"}, [pod("a")], "no metrics|did not receive metrics"),
        (HALF, [], "no pods returned by selector while calculating replica count"),
        ({"target": {"type": "Value", "value": "1"}}, [pod("a")], "neither an average utilization target nor"),
    ],
)
async def test_what_is_wrong_is_said_as_the_real_one_says_it(spec: Json, pods: list[Json], why: str) -> None:
    with pytest.raises(MetricsMissing, match=why):
        await proposed(spec, {"a": "1"}, *pods)


async def test_nobody_serves_them() -> None:
    source = ResourceSource(None, WallClock(NOW), Timing())
    lost = r"unable to fetch metrics from resource metrics API: .* \(get pods.metrics.k8s.io\)"
    with pytest.raises(MetricsMissing, match=lost):
        await source.propose("ns", {"name": "cpu"} | HALF, "app=a", [], 1, Tolerances())
