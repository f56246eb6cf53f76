"""Puts real machines behind the control API that the faults turn: the same knobs and verbs as those of hollow nodes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping

from fakes.control.control import Control
from fakes.control.knobs import Check, ControlError, Value, flag, number, one_of, text, whole
from harness.errors import TargetError
from harness.targets.machines import Machines, Trouble

SWITCHES: Mapping[str, Check] = {
    "device.plugin": one_of("down"),
    "device.allocate_error": text,
    "device.allocate_s": number(),
    "device.unhealthy": whole(),
    "device.count": whole(),
    "device.plugin_deaf": flag,
}
"""Knobs of the device plugin, each the switch of that name without its prefix."""


class NotDone(ControlError):
    """The machine refused, or could not."""

    status = 502


def wire_machines(control: Control, machines: Machines) -> None:
    able = [str(trouble) for trouble in Trouble if trouble not in machines.cannot]
    control.knobs.add("node.kubelet", machines.names, one_of(*able), _trouble(machines))
    control.add_verb("restart_kubelet", machines.names, lambda node, _: _saying(machines.restart_kubelet(node)))
    switched: dict[str, dict[str, Value]] = {}
    for knob, check in SWITCHES.items():
        control.knobs.add(knob, machines.names, check, _switch(machines, switched, knob.removeprefix("device.")))


def _trouble(machines: Machines) -> Callable[[str, Value], Awaitable[None]]:
    ailing: dict[str, Trouble] = {}

    async def apply(node: str, value: Value) -> None:
        """One trouble at a time: the next one relieves the last."""
        if (last := ailing.get(node)) is not None:
            await _saying(machines.relieve(node, last))
            ailing.pop(node, None)
        if value is not None:
            ailing[node] = Trouble(value)
            await _saying(machines.trouble(node, Trouble(value)))

    return apply


def _switch(
    machines: Machines, switched: MutableMapping[str, dict[str, Value]], switch: str
) -> Callable[[str, Value], Awaitable[None]]:
    async def apply(node: str, value: Value) -> None:
        switches = switched.setdefault(node, {})
        switches.pop(switch, None)
        if value is not None:
            switches[switch] = value
        await _saying(machines.switch_plugin(node, dict(switches)))

    return apply


async def _saying(deed: Awaitable[None]) -> None:
    try:
        await deed
    except TargetError as error:
        raise NotDone(str(error)) from error
