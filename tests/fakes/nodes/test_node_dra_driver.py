from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from fakes.config import PoolConfig
from fakes.nodes.client import NodeClient
from fakes.nodes.device_plugin import DevicePlugin
from fakes.nodes.dra_driver import DRIVER, TAINT, DraDriver
from fakes.nodes.machine import Machine
from fakes.timing import PRESETS, Timing
from harness.kube.port import AlreadyExists, Json, Kube, Resource

pytestmark = pytest.mark.looptime


class OneSlice:
    """The part of an API server that a driver writes to, which the embedded one lacks."""

    def __init__(self) -> None:
        self.slices: dict[str, Json] = {}

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Json:
        return {"metadata": {"name": name, "uid": f"uid-{name}"}}

    async def create(self, resource: Resource, obj: Json, namespace: str | None = None) -> Json:
        name = obj["metadata"]["name"]
        if name in self.slices:
            raise AlreadyExists(409, "AlreadyExists", name)
        self.slices[name] = obj
        return obj

    async def patch(self, resource: Resource, name: str, patch: Json, *args: Any, **kwargs: Any) -> Json:
        self.slices[name]["spec"] = patch["spec"]
        return self.slices[name]


async def test_its_gpus_are_in_a_slice_in_two_halves_and_a_sick_one_is_tainted_until_it_is_well() -> None:
    machine = Machine("dra-1", PoolConfig("dra", "on-demand", gpus=8, dra=True), index=1, provisioned=False)
    driver, server = DraDriver(machine), OneSlice()
    plugin = DevicePlugin(driver, [f"GPU-{n}" for n in range(8)], Timing(1.0, PRESETS["quick"]))
    running = asyncio.create_task(driver.run(NodeClient(cast(Kube, server))))
    try:
        plugin.start()
        await asyncio.sleep(1)
        spec = server.slices[f"dra-1-{DRIVER}"]["spec"]
        assert (spec["driver"], spec["nodeName"], spec["pool"]["name"]) == (DRIVER, "dra-1", "dra-1")
        assert [d["attributes"]["numa"]["int"] for d in spec["devices"]] == [0, 0, 0, 0, 1, 1, 1, 1]
        assert tainted(spec["devices"]) == []
        plugin.set_health("GPU-2", False)
        await asyncio.sleep(1)
        spec = server.slices[f"dra-1-{DRIVER}"]["spec"]
        assert tainted(spec["devices"]) == [("gpu-2", TAINT, "NoExecute")]
        assert spec["pool"]["generation"] == 2
        plugin.set_health("GPU-2", True)
        await asyncio.sleep(1)
        assert tainted(server.slices[f"dra-1-{DRIVER}"]["spec"]["devices"]) == []
    finally:
        running.cancel()


def tainted(devices: Sequence[Json]) -> list[tuple[str, str, str]]:
    return [(d["name"], t["key"], t["effect"]) for d in devices for t in d["taints"]]
