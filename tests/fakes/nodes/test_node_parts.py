"""The small parts of a node: addresses, labels, durations as Go prints them, the plain container, events."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from random import Random

import pytest

from fakes.clock import WallClock
from fakes.config import PoolConfig
from fakes.kube import LocalKube, Store
from fakes.nodes.address import listen_address
from fakes.nodes.events import EventRecorder
from fakes.nodes.images import go_duration
from fakes.nodes.labels import instance_of, node_labels, provider_id
from fakes.nodes.machine import Machine
from fakes.nodes.runtime import PlainContainer
from fakes.nodes.script_container import ImageRuntime
from fakes.timing import Timing
from harness.kube.port import EVENT

POOL = PoolConfig("spot", "spot")


@pytest.mark.parametrize(
    "annotations, address",
    [
        pytest.param(None, None, id="no-annotations"),
        pytest.param({"other": "x"}, None, id="not-created-yet"),
        pytest.param({"gpu-harness.dev/listen": "127.0.0.1:4000"}, ("127.0.0.1", 4000), id="listens"),
        pytest.param({"gpu-harness.dev/listen": "nonsense"}, None, id="unreadable"),
    ],
)
def test_listen_address(annotations: dict[str, str] | None, address: tuple[str, int] | None) -> None:
    assert listen_address({"metadata": {"annotations": annotations}}) == address


def test_provider_ids_lead_back_to_their_instance() -> None:
    assert provider_id(POOL, "spot-1") == "fake://zone-a/i-spot-1"
    assert instance_of("fake://zone-a/i-spot-1") == "i-spot-1"
    assert instance_of("kind://docker/gpu-harness/gpu-harness-worker2") == "i-gpu-harness-worker2"
    assert instance_of("gce://project/zone/name") == ""
    assert node_labels(POOL, "spot-1")["karpenter.sh/nodepool"] == "spot"
    assert node_labels(POOL, "spot-1")["nvidia.com/gpu.count"] == "4"
    assert not any("nvidia" in label for label in node_labels(PoolConfig("cpu", "spot", gpus=0), "cpu-1"))


def test_addresses_stay_addresses_for_many_nodes_and_pods() -> None:
    machine = Machine("n", POOL, 300, True)
    assert machine.pod_address(1) == "10.245.44.3"
    assert machine.pod_address(251) == machine.pod_address(1)
    assert machine.address == "10.0.1.60"


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "0s"), (0.35, "350ms"), (1.5, "1.5s"), (20, "20s"), (62.25, "1m2.25s"), (3600, "1h0m0s")],
)
def test_go_duration(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text


@pytest.mark.looptime
async def test_a_plain_container_ends_a_while_after_sigterm() -> None:
    pod = {"metadata": {"annotations": {"gpu-harness.dev/exit-s": "30"}}}
    loop = asyncio.get_running_loop()
    container = PlainContainer(pod, Timing(10))
    container.terminate()
    assert (await container.wait(), loop.time()) == (0, pytest.approx(3))
    killed = PlainContainer(pod, Timing(10))
    killed.terminate()
    killed.kill()
    assert (await killed.wait(), killed.probe("/")) == (137, None)


@pytest.mark.looptime
async def test_the_runtime_chooses_by_image() -> None:
    made = []

    async def create(pod: object, container: object, say: object) -> PlainContainer:
        made.append(container)
        return PlainContainer({"metadata": {}}, Timing())

    runtime = ImageRuntime(Timing(), {"vllm": create})
    await runtime.create({"metadata": {}}, {"image": "busybox:1"}, print)
    await runtime.create({"metadata": {}}, {"image": "vllm/vllm-openai:v1"}, print)
    assert made == [{"image": "vllm/vllm-openai:v1"}]


@pytest.mark.looptime
async def test_repeated_events_are_counted_and_floods_dropped() -> None:
    wall = WallClock(datetime(2026, 11, 29, tzinfo=UTC))
    kube = LocalKube(Store(wall, Random(1)), "test")
    events = EventRecorder(kube, wall, "kubelet", "n1")
    running = asyncio.ensure_future(events.run())
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default", "uid": "u"}}
    for _ in range(3):
        events.event(pod, "Warning", "Unhealthy", "refused")
    for n in range(100):
        events.event(pod, "Normal", "Other", str(n))
    await asyncio.sleep(1)
    found = (await kube.list(EVENT)).items
    assert [e["count"] for e in found if e["reason"] == "Unhealthy"] == [3]
    assert len([e for e in found if e["reason"] == "Other"]) == 22
    assert found[0]["source"] == {"component": "kubelet", "host": "n1"}
    running.cancel()
