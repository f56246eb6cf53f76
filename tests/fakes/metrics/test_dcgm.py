"""The GPU exporter's text and the autoscaler's view of it: both traps of scaling on what a GPU says."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from random import Random

import pytest
from aiohttp import ClientSession, web

from fakes.config import PoolConfig, WorldConfig
from fakes.metrics import dcgm
from fakes.metrics.gpu_scraper import GpuNode, GpuScraper
from fakes.metrics.parse import parse
from fakes.nodes.gpus import Gpu, GpuUse
from fakes.timing import Timing
from fakes.vllm.container import VllmContainer
from fakes.vllm.duty import DutyCycle
from fakes.vllm.engine import EngineRequest
from fakes.vllm.local_door import Switchboard
from fakes.world import World
from harness.kube.port import NAMESPACE, POD

H100 = "NVIDIA-H100-80GB-HBM3"
USED = GpuUse(0.985, 0.92)


def test_the_text_is_the_exporters_own() -> None:
    gpus = [Gpu(0, "GPU-a", True, USED, "inference", "llm-0", "vllm"), Gpu(1, "GPU-b", False)]
    lines = dcgm.exposition("spot-1", H100, gpus).splitlines()
    assert lines[:2] == [
        "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).", "# TYPE DCGM_FI_DEV_GPU_UTIL gauge",
    ]  # fmt: skip
    assert lines[2] == (
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",pci_bus_id="00000000:10:00.0",device="nvidia0",'
        'modelName="NVIDIA H100 80GB HBM3",Hostname="spot-1",DCGM_FI_DRIVER_VERSION="570.124.06",'
        'container="vllm",namespace="inference",pod="llm-0"} 98'
    )
    said = {(s.name, s.labels["gpu"]): s.value for s in parse("\n".join(lines))}
    assert said["DCGM_FI_DEV_FB_USED", "0"] + said["DCGM_FI_DEV_FB_FREE", "0"] == 81_559
    assert (said["DCGM_FI_DEV_FB_USED", "1"], said["DCGM_FI_DEV_XID_ERRORS", "1"]) == (0, 79)


@pytest.mark.looptime
async def test_a_pods_value_follows_its_scrapes_and_ends_with_it() -> None:
    held = [Gpu(0, "a", True, GpuUse(1.0, 0.5), "ns", "p", "c"), Gpu(1, "b", True, GpuUse(0.5, 0.5), "ns", "p", "c")]
    scraper = GpuScraper(Timing(), lambda: {"n": GpuNode(H100, lambda: held)})
    running = asyncio.ensure_future(scraper.run())
    found = scraper.latest("ns", "p")
    assert found is not None
    assert found.values["DCGM_FI_DEV_GPU_UTIL"] == 75  # the mean of its two GPUs
    assert found.values["DCGM_FI_DEV_FB_USED"] == 2 * round(81_559 / 2)  # the sum
    held = [Gpu(0, "a", True), Gpu(1, "b", True)]
    await asyncio.sleep(31)
    assert scraper.latest("ns", "p") is None
    running.cancel()


async def test_every_nodes_exporter_answers_behind_one_port() -> None:
    scraper = GpuScraper(Timing(), lambda: {"n": GpuNode(H100, lambda: [Gpu(0, "a", True)])})
    runner = web.AppRunner(scraper.app(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}/nodes"
    async with ClientSession() as session:
        async with session.get(f"{base}/n/metrics") as response:
            assert (await response.text()) == scraper.text("n")
        async with session.get(f"{base}/gone/metrics") as response:
            assert response.status == 404
    await runner.cleanup()


def test_a_duty_cycle_is_a_share_of_the_last_second() -> None:
    duty = DutyCycle()
    assert duty.share(10) == 0
    duty.begin(10)
    duty.begin(10.1)
    assert duty.share(10.25) == pytest.approx(0.25)
    duty.end(10.5)
    assert duty.share(10.75) == pytest.approx(0.5)
    assert duty.share(11.2) == pytest.approx(0.3)
    assert duty.share(12) == 0


@pytest.mark.looptime
async def test_one_stream_keeps_a_server_busy_and_its_memory_never_moves() -> None:
    pod = {"metadata": {"name": "llm-0", "creationTimestamp": "2026-11-29T12:00:00Z"}}
    container = {"name": "vllm", "image": "vllm", "args": ["--gpu-memory-utilization", "0.8"]}
    server = VllmContainer(pod, container, timing=Timing(), rng=Random(1), door=Switchboard().door)
    await server.start()
    assert server.gpu_use() == GpuUse()
    await asyncio.sleep(30)
    assert server.gpu_use() == GpuUse(0.0, 0.8)
    assert server._server is not None
    server._server.engine.submit(EngineRequest("r", 10, 300, "length", 300, Nowhere()))
    await asyncio.sleep(1.5)
    assert server.gpu_use() == GpuUse(1.0, 0.8)  # one of 1,024 sequences that it could run
    await asyncio.sleep(5)
    assert server.gpu_use() == GpuUse(0.0, 0.8)
    server.kill()
    assert server.gpu_use() == GpuUse()


class Nowhere:
    def token(self, index: int, finish: str | None) -> None:
        """Nobody reads it."""


@pytest.mark.looptime
async def test_an_autoscaler_reads_the_gpus_of_a_whole_cluster() -> None:
    pool = PoolConfig("gpu", "on-demand", gpus=2, nodes=1, provision=False)
    config = WorldConfig(seed=1, time_scale=10, pools=(pool,))
    world = World(config, datetime(2026, 11, 29, 12, tzinfo=UTC), switchboard=Switchboard())
    kube, running = world.kube("test"), asyncio.create_task(world.run())
    await kube.create(NAMESPACE, {"metadata": {"name": "inference"}})
    container = {"name": "vllm", "image": "vllm/vllm-openai:v0.32.0", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    meta = {"name": "llm-0", "namespace": "inference", "labels": {"app": "llm"}}
    await kube.create(POD, {"metadata": meta, "spec": {"containers": [container]}})
    await asyncio.sleep(20)
    (used,) = await world.metrics.pod_metric("inference", "app=llm", "DCGM_FI_DEV_FB_USED")
    (busy,) = await world.metrics.pod_metric("inference", "app=llm", "DCGM_FI_DEV_GPU_UTIL")
    assert (used.pod, used.value, busy.value) == ("llm-0", round(0.92 * 81_559), 0)
    assert {r["name"] for r in world.metrics.resources} >= {"pods/DCGM_FI_DEV_GPU_UTIL", "pods/DCGM_FI_DEV_FB_USED"}
    text = world.surroundings.gpu_scraper.text("gpu-1")
    assert text is not None
    assert text.count('pod="llm-0"') == 4  # of its one GPU; the other is nobody's
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
