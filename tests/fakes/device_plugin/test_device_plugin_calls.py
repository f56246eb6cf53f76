"""Each call of the API, and each switch, as a kubelet sees it over the sockets."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import grpc
import pytest
from kubelet_side import KubeletSide, Running, calling
from seen import until

from fakes.control.knobs import BadValue, UnknownName
from fakes.device_plugin.plugin import Plugin
from fakes.device_plugin.resource import BadResource, Resource, preferred, read_resources

GPU = "nvidia.com/gpu"
HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"


async def test_it_registers_and_lists_its_devices(folder: Path, kubelet: KubeletSide, running: Running) -> None:
    async with running.go():
        request = await kubelet.has_registered(1)
        assert (request.version, request.resource_name) == ("v1beta1", GPU)
        assert "/" not in request.endpoint
        assert request.options.get_preferred_allocation_available
        async with calling(folder, request) as (caller, lists):
            devices = await lists.nth(1)
            assert list(devices.values()) == [HEALTHY] * 4
            assert all(id.startswith("GPU-") and len(id) <= 63 for id in devices)
            assert (await caller.options()).get_preferred_allocation_available
            await caller.pre_start()


async def test_several_resources_in_one_process(folder: Path, kubelet: KubeletSide) -> None:
    running = Running(folder, f"{GPU}=2,nvidia.com/mig-1g.10gb=3")
    async with running.go() as plugin:
        mig = await kubelet.has_registered(1, "nvidia.com/mig-1g.10gb")
        gpu = await kubelet.has_registered(1)
        assert mig.endpoint != gpu.endpoint
        plugin.turn("unhealthy", GPU, 1)
        async with calling(folder, mig) as (caller, lists), calling(folder, gpu) as (_, of_gpus):
            devices = await lists.nth(1)
            assert [id[:4] for id in devices] == ["MIG-"] * 3
            assert set(devices.values()) == {HEALTHY}
            assert list((await of_gpus.nth(1)).values()) == [UNHEALTHY, HEALTHY]
            given = await caller.allocate(list(devices)[1])
            assert given.devices[0].container_path == "/dev/nvidia-caps/nvidia-cap1"


async def test_allocate_names_the_devices(folder: Path, kubelet: KubeletSide, running: Running) -> None:
    async with running.go(), calling(folder, await kubelet.has_registered(1)) as (caller, lists):
        ids = list(await lists.nth(1))
        given = await caller.allocate(ids[2], ids[0])
        assert given.envs["NVIDIA_VISIBLE_DEVICES"] == f"{ids[2]},{ids[0]}"
        assert [d.container_path for d in given.devices] == ["/dev/nvidia2", "/dev/nvidia0"]
        assert {d.host_path for d in given.devices} == {"/dev/null"}
        assert running.events("allocate")[0]["ids"] == [[ids[2], ids[0]]]


async def test_preferred_allocation_over_the_socket(folder: Path, kubelet: KubeletSide, running: Running) -> None:
    async with running.go(), calling(folder, await kubelet.has_registered(1)) as (caller, lists):
        ids = list(await lists.nth(1))
        assert await caller.prefer(ids[::-1], [ids[3]], 2) == [ids[3], ids[0]]


def test_preferred_devices_share_a_numa_node_where_they_can() -> None:
    resource = Resource(GPU, 8, numa_nodes=2)
    ids = [f"d{n}" for n in range(8)]
    numa = {id: resource.numa_node(n) for n, id in enumerate(ids)}
    assert list(numa.values()) == [0, 0, 0, 0, 1, 1, 1, 1]
    assert preferred(["d3", "d4", "d5", "d6"], [], 2, numa, ids) == ["d4", "d5"]
    assert preferred(["d0", "d3", "d4", "d5", "d6"], ["d6"], 2, numa, ids) == ["d6", "d4"]
    assert preferred(["d0", "d4"], [], 2, numa, ids) == ["d0", "d4"]


async def test_devices_turn_unhealthy_one_by_one_and_back(folder: Path, kubelet: KubeletSide, running: Running) -> None:
    async with running.go() as plugin, calling(folder, await kubelet.has_registered(1)) as (_, lists):
        await lists.nth(1)
        for turned, unhealthy in enumerate((1, 2, None), start=2):
            plugin.turn("unhealthy", GPU, unhealthy)
            health = list((await lists.nth(turned)).values())
            assert health == [UNHEALTHY] * (unhealthy or 0) + [HEALTHY] * (4 - (unhealthy or 0))
        assert len({tuple(seen) for seen in lists.seen}) == 1, "a device keeps its name"


@pytest.mark.parametrize("count", [0, 3, 8])
async def test_a_wrong_count(folder: Path, kubelet: KubeletSide, running: Running, count: int) -> None:
    async with running.go() as plugin, calling(folder, await kubelet.has_registered(1)) as (_, lists):
        right = list(await lists.nth(1))
        plugin.turn("count", GPU, count)
        wrong = list(await lists.nth(2))
        assert len(wrong) == count
        assert wrong[:4] == right[:count]
        plugin.turn("count", GPU, None)
        assert list(await lists.nth(3)) == right


async def test_allocate_fails_with_the_words_it_was_given(folder: Path, kubelet: KubeletSide, running: Running) -> None:
    async with running.go() as plugin, calling(folder, await kubelet.has_registered(1)) as (caller, lists):
        id = next(iter(await lists.nth(1)))
        plugin.turn("allocate_error", GPU, "Xid 79")
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await caller.allocate(id)
        assert (failed.value.code(), failed.value.details()) == (grpc.StatusCode.INTERNAL, "Xid 79")
        plugin.turn("allocate_error", GPU, None)
        await caller.allocate(id)


async def test_allocate_takes_its_time(folder: Path, kubelet: KubeletSide, running: Running) -> None:
    async with running.go() as plugin, calling(folder, await kubelet.has_registered(1)) as (caller, lists):
        id = next(iter(await lists.nth(1)))
        plugin.turn("allocate_s", GPU, 0.4)
        began_s = asyncio.get_running_loop().time()
        await caller.allocate(id)
        assert asyncio.get_running_loop().time() - began_s >= 0.4


async def test_allocate_hangs_until_it_is_turned_back(folder: Path, kubelet: KubeletSide, running: Running) -> None:
    async with running.go() as plugin, calling(folder, await kubelet.has_registered(1)) as (caller, lists):
        id = next(iter(await lists.nth(1)))
        plugin.turn("allocate_hangs", GPU, True)
        hanging = asyncio.ensure_future(caller.allocate(id))
        await until(lambda: bool(running.events("allocate")))
        await caller.options()  # the process is alive, and so is its connection
        plugin.turn("unhealthy", GPU, 1)
        assert (await lists.nth(2))[id] == UNHEALTHY
        assert not hanging.done()
        plugin.turn("allocate_hangs", GPU, None)
        assert (await hanging).envs["NVIDIA_VISIBLE_DEVICES"] == id


async def test_a_crash_ends_the_stream_and_what_is_under_way(
    folder: Path, kubelet: KubeletSide, running: Running
) -> None:
    async with running.go() as plugin:
        request = await kubelet.has_registered(1)
        async with calling(folder, request) as (caller, lists):
            id = next(iter(await lists.nth(1)))
            plugin.turn("allocate_hangs", GPU, True)
            hanging = asyncio.ensure_future(caller.allocate(id))
            await until(lambda: bool(running.events("allocate")))
            plugin.turn("plugin", GPU, "down")
            await lists.ended()
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await hanging
            assert failed.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        assert plugin.state()[GPU]["registered"] is False
        plugin.turn("plugin", GPU, None)
        async with calling(folder, await kubelet.has_registered(2)) as (_, lists):
            assert id in await lists.nth(1)


async def test_late_by_a_while_or_for_ever(folder: Path, kubelet: KubeletSide) -> None:
    running = Running(folder, f"{GPU}=1,nvidia.com/mig-1g.10gb=1,example.com/fpga=1")
    running.plugin.turn("plugin_late", GPU, 0.5)
    running.plugin.turn("plugin_late", "nvidia.com/mig-1g.10gb", "never")
    began_s = asyncio.get_running_loop().time()
    async with running.go() as plugin:
        await kubelet.has_registered(1)
        assert asyncio.get_running_loop().time() - began_s >= 0.5
        assert [r.resource_name for r in kubelet.registered] == ["example.com/fpga", GPU]
        plugin.turn("plugin_late", "nvidia.com/mig-1g.10gb", None)
        await kubelet.has_registered(1, "nvidia.com/mig-1g.10gb")


async def test_it_registers_again_with_a_kubelet_that_was_restarted(
    folder: Path, kubelet: KubeletSide, running: Running
) -> None:
    async with running.go():
        request = await kubelet.has_registered(1)
        await kubelet.stop()
        await kubelet.start()
        assert (await kubelet.has_registered(2)).endpoint == request.endpoint
        async with calling(folder, request) as (_, lists):
            assert len(await lists.nth(1)) == 4
    assert not (folder / request.endpoint).exists(), "a plugin that ends takes its socket along"


async def test_a_deaf_one_does_not(folder: Path, kubelet: KubeletSide, running: Running) -> None:
    other = Running(folder, "nvidia.com/mig-1g.10gb=1")
    async with running.go() as plugin, other.go():
        request = await kubelet.has_registered(1)
        await kubelet.has_registered(1, "nvidia.com/mig-1g.10gb")
        plugin.turn("plugin_deaf", GPU, True)
        await kubelet.stop()
        await kubelet.start()
        await kubelet.has_registered(2, "nvidia.com/mig-1g.10gb")  # one that hears has seen it
        assert len([r for r in kubelet.registered if r.resource_name == GPU]) == 1
        assert not (folder / request.endpoint).exists()
        plugin.turn("plugin_deaf", GPU, None)
        await kubelet.has_registered(2)


async def test_it_tries_until_the_kubelet_takes_it(folder: Path, kubelet: KubeletSide, running: Running) -> None:
    kubelet.refuse = True
    async with running.go():
        await until(lambda: len(running.events("not_registered")) >= 2)
        kubelet.refuse = False
        await kubelet.has_registered(1)
    assert running.events("not_registered")[0]["error"] == "UNAVAILABLE: not now"


async def test_nothing_is_there_before_the_kubelet_is(folder: Path, running: Running) -> None:
    kubelet = KubeletSide(folder)
    async with running.go() as plugin:
        await asyncio.sleep(0)
        assert plugin.state()[GPU]["registered"] is False
        await kubelet.start()
        await kubelet.has_registered(1)
    await kubelet.stop()


def test_the_same_node_has_the_same_devices_and_another_has_others() -> None:
    resource = Resource(GPU, 3)
    assert resource.ids("a") == resource.ids("a")
    assert not set(resource.ids("a")) & set(resource.ids("b"))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("gpu=4", "DOMAIN/NAME"),
        ("nvidia.com/gpu", "how many"),
        ("nvidia.com/gpu=-1", "how many"),
        ("nvidia.com/gpu=1,nvidia.com/gpu=2", "twice"),
        ("", "no resource"),
    ],
)
def test_a_resource_that_nobody_can_offer(text: str, wrong: str) -> None:
    with pytest.raises(BadResource, match=wrong):
        read_resources([text])


@pytest.mark.parametrize(
    ("switch", "value"),
    [
        ("plugin", "up"), ("plugin_late", -1), ("plugin_late", "soon"), ("unhealthy", 1.5), ("count", "4"),
        ("allocate_error", ""), ("allocate_s", "1"), ("allocate_hangs", False), ("plugin_deaf", 1),
    ],
)  # fmt: skip
async def test_a_value_that_a_switch_does_not_take(folder: Path, switch: str, value: object) -> None:
    plugin = Plugin(read_resources([f"{GPU}=1"]), folder, "n", lambda what, **details: None)
    with pytest.raises(BadValue, match=switch):
        plugin.turn(switch, GPU, value)
    with pytest.raises(UnknownName, match=re.escape(GPU)):
        plugin.turn("unhealthy", "amd.com/gpu", 1)
