"""Where real pods listen is written down once they have an address, and again when it is another."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from random import Random

import pytest

from fakes.clock import WallClock
from fakes.controllers.informer import Informer
from fakes.kube.local import LocalKube
from fakes.kube.store import Store
from fakes.nodes.address import listen_address
from fakes.nodes.announcer import Announcer, listens_at
from harness.kube.port import POD, Json


def _pod(name: str = "a", **spec: object) -> Json:
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 8000}, {"containerPort": 9000}]}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container], **spec}}


def test_it_is_the_pods_address_and_the_first_port_it_declares() -> None:
    assert listens_at({**_pod(), "status": {"podIP": "10.244.1.2"}}) == "10.244.1.2:8000"


@pytest.mark.parametrize(
    "pod",
    [
        _pod(),
        {**_pod(hostNetwork=True), "status": {"podIP": "10.0.0.11"}},
        {**_pod(containers=[{"name": "c", "image": "i"}]), "status": {"podIP": "10.244.1.2"}},
    ],
)
def test_some_listen_nowhere(pod: Json) -> None:
    assert listens_at(pod) is None


@pytest.mark.looptime
async def test_every_new_address_is_written_down() -> None:
    kube = LocalKube(Store(WallClock(datetime(2026, 1, 1, tzinfo=UTC)), Random(1)), "kubelet")
    informer = Informer(kube, POD)
    tasks = [asyncio.create_task(t) for t in (Announcer(kube, informer).run(), informer.run())]
    await kube.create(POD, _pod())
    for address in ("10.244.1.2", "10.244.1.9"):
        await kube.patch(POD, "a", {"status": {"podIP": address}}, "default", subresource="status")
        async with asyncio.timeout(10):
            while listen_address(pod := await kube.get(POD, "a", "default")) != (address, 8000):
                await asyncio.sleep(0.1)
    before = pod["metadata"]["resourceVersion"]
    await asyncio.sleep(10)
    assert (await kube.get(POD, "a", "default"))["metadata"]["resourceVersion"] == before, "said once"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
