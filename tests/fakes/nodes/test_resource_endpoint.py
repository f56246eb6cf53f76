"""What a hollow kubelet tells a metrics-server, and over what."""

from __future__ import annotations

import asyncio
import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import httpx
import pytest

from fakes.clock import WallClock
from fakes.config import PoolConfig, WorldConfig
from fakes.kube.local import LocalKube
from fakes.kube.store import Store
from fakes.metrics.parse import parse
from fakes.nodes.resource_endpoint import NODE_BYTES, PATH, ResourceEndpoint
from fakes.nodes.usage import ContainerUse
from fakes.surroundings import RESOURCE_METRICS, Surroundings
from harness.kube.port import NODE, Json
from harness.stack.certificates import Authority

SINCE, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def use(milli: float, since: str = SINCE, pod: str = "llm-a") -> ContainerUse:
    return ContainerUse("inference", pod, "vllm", since, milli, 1024)


def series(text: str, name: str) -> dict[str, float]:
    return {sample.labels.get("pod", ""): sample.value for sample in parse(text) if sample.name == name}


class Node:
    def __init__(self) -> None:
        self.uses: list[ContainerUse] | None = []
        self.endpoint = ResourceEndpoint(lambda: self.uses, WallClock(datetime(2026, 1, 1, tzinfo=UTC)))

    def text(self) -> str:
        return self.endpoint.text(self.uses or [])


async def test_cpu_adds_up_memory_does_not_and_a_restart_begins_at_0() -> None:
    node = Node()
    node.uses = [use(1000), use(500, pod="llm-b")]
    assert series(node.text(), "container_cpu_usage_seconds_total") == {}, "nothing was added up yet"
    node.endpoint.add(2)
    node.uses = [use(250), use(500, pod="llm-b")]
    node.endpoint.add(2)
    assert series(node.text(), "container_cpu_usage_seconds_total") == {"llm-a": 2.5, "llm-b": 2.0}
    assert series(node.text(), "container_memory_working_set_bytes") == {"llm-a": 1024, "llm-b": 1024}
    assert series(node.text(), "node_memory_working_set_bytes") == {"": NODE_BYTES + 2048}
    assert series(node.text(), "node_cpu_usage_seconds_total")[""] == pytest.approx(2.5 + 2.0 + 0.4)
    node.uses = [use(100, since=LATER)]
    node.endpoint.add(1)
    assert series(node.text(), "container_cpu_usage_seconds_total") == {"llm-a": 0.1}
    assert series(node.text(), "container_start_time_seconds") == {
        "llm-a": datetime(2026, 1, 1, 0, 1, tzinfo=UTC).timestamp()
    }


async def test_a_silent_kubelet_adds_nothing_up() -> None:
    node = Node()
    node.uses = [use(1000)]
    node.endpoint.add(1)
    node.uses = None
    node.endpoint.add(5)
    node.uses = [use(1000)]
    assert series(node.text(), "container_cpu_usage_seconds_total") == {"llm-a": 1.0}


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    pair = Authority("test", tmp_path).issue("kubelet", hosts=("127.0.0.1",))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


async def test_it_is_asked_over_https_and_a_silent_one_hangs_up(tls: ssl.SSLContext) -> None:
    node = Node()
    node.uses = [use(1000)]
    node.endpoint.add(1)
    bound = socket.create_server(("127.0.0.1", 0))
    url = f"https://127.0.0.1:{bound.getsockname()[1]}{PATH}"
    serving = asyncio.ensure_future(node.endpoint.serve(bound, tls))
    async with httpx.AsyncClient(verify=False, trust_env=False) as client:
        answer = await client.get(url)
        assert series(answer.text, "container_cpu_usage_seconds_total")["llm-a"] >= 1.0
        node.uses = None
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get(url)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        with pytest.raises(httpx.ConnectError):
            await client.get(url)


async def test_each_node_says_where_its_kubelet_answers_until_it_loses_its_power(tls: ssl.SSLContext) -> None:
    wall = WallClock(datetime.now(UTC))
    store = Store(wall, Random(1))
    config = WorldConfig(
        seed=1, time_scale=60.0, pools=(PoolConfig("fixed", "on-demand", nodes=2, stock=2),),
        aside=frozenset({RESOURCE_METRICS}),
    )  # fmt: skip
    around = Surroundings(config, wall, lambda manager: LocalKube(store, manager), kubelet_tls=tls)
    running = asyncio.ensure_future(around.run())
    kube = LocalKube(store, "test")
    try:
        async with asyncio.timeout(60), httpx.AsyncClient(verify=False, trust_env=False) as client:
            while len(nodes := (await kube.list(NODE)).items) < 2:
                await asyncio.sleep(0.01)
            urls = {n["metadata"]["name"]: _url(n["status"]) for n in nodes}
            assert len(set(urls.values())) == 2
            for url in urls.values():
                assert "node_cpu_usage_seconds_total" in (await client.get(url)).text
            around.kubelets["fixed-1"].kill()
            with pytest.raises(httpx.TransportError):
                while await client.get(urls["fixed-1"]):
                    await asyncio.sleep(0.01)
            assert (await client.get(urls["fixed-2"])).status_code == 200
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _url(status: Json) -> str:
    host = next(a["address"] for a in status["addresses"] if a["type"] == "InternalIP")
    return f"https://{host}:{status['daemonEndpoints']['kubeletEndpoint']['Port']}{PATH}"
