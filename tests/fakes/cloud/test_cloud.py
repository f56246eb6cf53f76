"""Stock, launch delays, notices and power cuts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random

import pytest

from fakes.cloud.cloud import Cloud, InstanceState, OutOfStock, UnknownInstance, WrongState
from fakes.config import PoolConfig
from fakes.timing import Durations, Spread, Timing

pytestmark = pytest.mark.looptime

SPOT = PoolConfig("spot", "spot", nodes=1, stock=1, price_per_hour=4.0)
ON_DEMAND = PoolConfig("on-demand", "on-demand", nodes=1, stock=3)


@dataclass
class World:
    booted: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    noticed: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    def cloud(self) -> Cloud:
        cloud = Cloud(
            (SPOT, ON_DEMAND), Timing(10, Durations(launch=Spread(30))), Random(1),
            boot=lambda i: self.booted.append(i.node), lost=lambda i: self.lost.append(i.node),
        )  # fmt: skip
        cloud.on_notice.append(lambda i: self.noticed.append(i.node))
        cloud.on_gone.append(lambda i: self.gone.append(i.node))
        cloud.start()
        return cloud


def states(cloud: Cloud) -> dict[str, str]:
    return {i.node: i.state.value for i in cloud.instances.values()}


async def test_initial_instances_run_at_once_and_are_told_apart() -> None:
    world = World()
    cloud = world.cloud()
    assert world.booted == ["spot-1", "on-demand-1"]
    assert [i.machine.provisioned for i in cloud.instances.values()] == [False, False]
    assert [i.machine.index for i in cloud.instances.values()] == [1, 2]


async def test_a_launch_takes_its_delay_and_names_count_on() -> None:
    world = World()
    cloud = world.cloud()
    instance = cloud.launch("on-demand")
    assert (instance.id, instance.state) == ("i-on-demand-2", InstanceState.PENDING)
    await asyncio.sleep(2.9)
    assert world.booted[2:] == []
    await asyncio.sleep(0.2)
    assert world.booted[2:] == ["on-demand-2"]
    assert instance.machine.provisioned


async def test_stock_ends_and_comes_back_with_a_terminated_instance() -> None:
    world = World()
    cloud = world.cloud()
    with pytest.raises(OutOfStock, match="pool spot"):
        cloud.launch("spot")
    cloud.launch("on-demand")
    second = cloud.launch("on-demand")
    with pytest.raises(OutOfStock):
        cloud.launch("on-demand")
    cloud.terminate(second.id)
    cloud.terminate(second.id)
    assert cloud.stock("on-demand") == 1
    assert world.lost == []  # it never had power
    assert world.gone == ["on-demand-3"]


async def test_an_interruption_ends_in_a_power_cut_and_the_stock_is_gone() -> None:
    world = World()
    cloud = world.cloud()
    cloud.interrupt("i-spot-1", 120)
    assert (world.noticed, states(cloud)["spot-1"]) == (["spot-1"], "interrupting")
    await asyncio.sleep(11.9)
    assert world.lost == []
    await asyncio.sleep(0.2)
    assert (world.lost, world.gone, states(cloud)["spot-1"]) == (["spot-1"], ["spot-1"], "terminated")
    with pytest.raises(OutOfStock):
        cloud.launch("spot")


async def test_an_interrupted_instance_that_is_drained_early_does_not_come_back_either() -> None:
    world = World()
    cloud = world.cloud()
    cloud.interrupt("i-spot-1", 120)
    cloud.terminate("i-spot-1")
    assert (world.lost, cloud.stock("spot")) == (["spot-1"], 0)
    await asyncio.sleep(20)
    assert world.lost == ["spot-1"]


async def test_a_cancelled_interruption_leaves_the_instance_running() -> None:
    world = World()
    cloud = world.cloud()
    cloud.interrupt("i-spot-1", 120)
    cloud.cancel_interruption("i-spot-1")
    cloud.cancel_interruption("i-spot-1")
    await asyncio.sleep(20)
    assert (world.lost, states(cloud)["spot-1"]) == ([], "running")
    cloud.terminate("i-spot-1")
    assert cloud.stock("spot") == 1


async def test_what_cannot_be_interrupted() -> None:
    cloud = World().cloud()
    with pytest.raises(UnknownInstance, match="known: i-on-demand-1, i-spot-1"):
        cloud.interrupt("i-nobody", 1)
    with pytest.raises(WrongState, match="only spot"):
        cloud.interrupt("i-on-demand-1", 1)
    cloud.interrupt("i-spot-1", 1)
    with pytest.raises(WrongState, match="interrupting"):
        cloud.interrupt("i-spot-1", 1)
    cloud.terminate("i-spot-1")
    with pytest.raises(WrongState):
        cloud.cancel_interruption("i-spot-1")


async def test_cost_is_in_scenario_hours() -> None:
    world = World()
    cloud = world.cloud()
    await asyncio.sleep(180)  # half a scenario hour
    cloud.terminate("i-spot-1")
    await asyncio.sleep(180)
    assert cloud.cost() == pytest.approx(2.0)
