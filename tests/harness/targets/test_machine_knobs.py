from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random
from typing import Any

import pytest

from fakes.cloud.cloud import Cloud
from fakes.control.control import Control
from fakes.control.knobs import BadValue
from fakes.timing import Timing
from harness.errors import TargetError
from harness.targets.machine_knobs import NotDone, wire_machines
from harness.targets.machines import Trouble


class Bench:
    """Machines that write down what is done to them; a deed named in ``failing`` cannot be done."""

    cannot: Mapping[Trouble, str] = {Trouble.CUT_OFF: "no firewall"}

    def __init__(self, failing: str = "") -> None:
        self.deeds: list[tuple[Any, ...]] = []
        self._failing = failing

    def names(self) -> Collection[str]:
        return ["n1"]

    async def trouble(self, node: str, trouble: Trouble) -> None:
        self._do("trouble", node, trouble.value)

    async def relieve(self, node: str, trouble: Trouble) -> None:
        self._do("relieve", node, trouble.value)

    async def restart_kubelet(self, node: str) -> None:
        self._do("restart_kubelet", node)

    async def power_on(self, node: str) -> None:
        self._do("power_on", node)

    async def power_off(self, node: str) -> None:
        self._do("power_off", node)

    async def shut_down(self, node: str) -> None:
        self._do("shut_down", node)

    async def switch_plugin(self, node: str, switches: Mapping[str, Any]) -> None:
        self._do("switch_plugin", node, dict(switches))

    def _do(self, *deed: Any) -> None:
        self.deeds.append(deed)
        if deed[0] == self._failing:
            raise TargetError("docker: no such container")


def wired(bench: Bench) -> Control:
    control = Control(Cloud((), Timing(), Random(1), boot=lambda i: None, lost=lambda i: None))
    wire_machines(control, bench)
    return control


async def test_a_trouble_is_relieved_before_the_next_and_when_turned_back() -> None:
    bench = Bench()
    knobs = wired(bench).knobs
    for value in ("frozen", "off", None, None):
        await knobs.turn("node.kubelet", "n1", value)
    assert bench.deeds == [
        ("trouble", "n1", "frozen"),
        ("relieve", "n1", "frozen"),
        ("trouble", "n1", "off"),
        ("relieve", "n1", "off"),
    ]


async def test_what_the_machines_cannot_have_is_no_value_of_the_knob() -> None:
    with pytest.raises(BadValue, match="must be one of silent, frozen, off, disconnected, runtime_down, got 'cut_off'"):
        await wired(Bench()).knobs.turn("node.kubelet", "n1", "cut_off")


async def test_the_plugin_hears_of_all_its_switches_each_time() -> None:
    bench = Bench()
    knobs = wired(bench).knobs
    await knobs.turn("device.unhealthy", "n1", 1)
    await knobs.turn("device.allocate_s", "n1", 2.5)
    await knobs.turn("device.unhealthy", "n1", None)
    assert bench.deeds == [
        ("switch_plugin", "n1", {"unhealthy": 1}),
        ("switch_plugin", "n1", {"unhealthy": 1, "allocate_s": 2.5}),
        ("switch_plugin", "n1", {"allocate_s": 2.5}),
    ]


async def test_a_deed_that_failed_is_refused_with_its_reason_and_is_still_to_be_undone() -> None:
    bench = Bench(failing="trouble")
    knobs = wired(bench).knobs
    with pytest.raises(NotDone, match="no such container"):
        await knobs.turn("node.kubelet", "n1", "frozen")
    await knobs.turn("node.kubelet", "n1", None)
    assert bench.deeds[-1] == ("relieve", "n1", "frozen")
