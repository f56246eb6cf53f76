"""The Node of an instance that is gone does not stay."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from random import Random

import pytest

from fakes.clock import WallClock
from fakes.cloud.cloud import Cloud
from fakes.cloud.node_controller import CloudNodeController
from fakes.config import PoolConfig
from fakes.kube import LocalKube, Store
from fakes.timing import Timing
from harness.kube.port import NODE

pytestmark = pytest.mark.looptime


async def test_the_node_of_a_lost_instance_is_deleted_and_others_stay() -> None:
    kube = LocalKube(Store(WallClock(datetime(2026, 11, 29, tzinfo=UTC)), Random(1)), "test")
    pools = (PoolConfig("spot", "spot", nodes=2, stock=2),)
    cloud = Cloud(pools, Timing(), Random(1), boot=lambda i: None, lost=lambda i: None)
    cloud.start()
    for instance in cloud.instances.values():
        await kube.create(NODE, {"metadata": {"name": instance.node}})
    controller = asyncio.ensure_future(CloudNodeController(kube, cloud).run())
    cloud.interrupt("i-spot-1", 5)
    await asyncio.sleep(4.9)
    assert len((await kube.list(NODE)).items) == 2
    await asyncio.sleep(0.2)
    assert [n["metadata"]["name"] for n in (await kube.list(NODE)).items] == ["spot-2"]
    controller.cancel()
