"""The plugin's process: several resources, each with its own way to the kubelet, and their switches."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fakes.control.knobs import UnknownName, Value
from fakes.device_plugin.registration import Registered
from fakes.device_plugin.resource import Resource
from fakes.device_plugin.service import Say
from fakes.device_plugin.switches import ALL, SWITCHES, check

DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")
"""A constant of the kubelet's: ``--root-dir`` does not move it."""


class Plugin:
    """``node`` goes into the ids of the devices. ``run`` until cancelled."""

    def __init__(self, resources: Sequence[Resource], folder: Path, node: str, say: Say) -> None:
        def about(resource: Resource) -> Say:
            return lambda what, **details: say(what, resource=resource.name, **details)

        self._parts = {r.name: Registered(r, folder, node, about(r)) for r in resources}
        self._turned: dict[str, dict[str, Value]] = {r.name: {} for r in resources}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for part in self._parts.values():
                tasks.create_task(part.run())

    def turn(self, switch: str, resource: str, value: Value) -> None:
        """Raises ``ControlError``; None is the default."""
        check(switch, value)
        for name in self._of(resource):
            self._set(name, switch, value)

    def set_all(self, wanted: Mapping[str, Mapping[str, Value]]) -> None:
        """By resource and switch; what is not there stands at its default. All or nothing: raises ``ControlError``."""
        new: dict[str, dict[str, Value]] = {name: {} for name in self._parts}
        for resource in sorted(wanted, key=lambda name: name != ALL):  # what is said of one resource wins
            for switch, value in wanted[resource].items():
                check(switch, value)
                for name in self._of(resource):
                    new[name][switch] = value
        for name, values in new.items():
            for switch in SWITCHES:
                if values.get(switch) != self._turned[name].get(switch):
                    self._set(name, switch, values.get(switch))

    def _set(self, name: str, switch: str, value: Value) -> None:
        self._turned[name][switch] = value
        self._parts[name].turn(switch, value)

    def _of(self, resource: str) -> list[str]:
        if resource == ALL:
            return list(self._parts)
        if resource not in self._parts:
            raise UnknownName(f"there is no resource {resource}; there are: {', '.join(self._parts)}")
        return [resource]

    def state(self) -> dict[str, Any]:
        """By resource: what is turned, whether it is registered, its devices' health."""
        return {
            name: {
                "switches": {switch: v for switch, v in self._turned[name].items() if v is not None},
                "registered": part.registered,
                "devices": part.service.devices(),
            }
            for name, part in self._parts.items()
        }
