"""Without an interruption queue, a notice is the deletion of the instance's NodeClaim, and of no other."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from random import Random

import pytest

from fakes.clock import WallClock
from fakes.cloud.cloud import Cloud
from fakes.cloud.notices import InterruptionNotices
from fakes.config import PoolConfig
from fakes.kube import LocalKube, Store
from fakes.timing import Timing
from harness.kube.port import NODE_CLAIM

pytestmark = pytest.mark.looptime


async def test_a_notice_deletes_the_claim_of_its_node_alone() -> None:
    kube = LocalKube(Store(WallClock(datetime(2026, 11, 30, tzinfo=UTC)), Random(1)), "test")
    for claim, node in (("gpu-a", "kwok-gpu-a-1"), ("gpu-b", "kwok-gpu-b-1")):
        meta = {"name": claim}
        await kube.create(NODE_CLAIM, {"metadata": meta, "spec": {}, "status": {"nodeName": node}})
        await kube.patch(NODE_CLAIM, claim, {"status": {"nodeName": node}}, subresource="status")
    cloud = Cloud((), Timing(), Random(1), boot=lambda i: None, lost=lambda i: None)
    noticing = asyncio.ensure_future(InterruptionNotices(kube, cloud).run())
    spot = PoolConfig("elastic", "spot", gpus=1)
    instances = [cloud.adopt(node, spot, f"kwok://{node}") for node in ("kwok-gpu-a-1", "kwok-gpu-b-1")]
    await asyncio.sleep(0.1)
    cloud.interrupt(instances[1].id, 120)
    await asyncio.sleep(0.1)
    assert [c["metadata"]["name"] for c in (await kube.list(NODE_CLAIM)).items] == ["gpu-a"]
    cloud.interrupt(instances[0].id, 0)
    await asyncio.sleep(0.1)
    assert not (await kube.list(NODE_CLAIM)).items
    noticing.cancel()
