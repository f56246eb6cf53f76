"""What can be wrong with a device plugin: one switch each, for one resource or for all.

The names are those of the knobs ``device.…`` of a world (``fakes/control/wiring.py``), so that a fault turns the same
on every target.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from fakes.control.knobs import BadValue, Check, UnknownName, Value, flag, number, one_of, seconds_or_never, text, whole
from fakes.device_plugin.resource import MOST_DEVICES

ALL = "*"
"""In place of a resource: each of them."""
ENV_PREFIX = "GPU_PLUGIN_"
RESOURCES = "resources"
"""The one variable of that prefix that is no switch."""


@dataclass(frozen=True, slots=True)
class Switch:
    about: str
    takes: str
    check: Check


SWITCHES: dict[str, Switch] = {
    "plugin": Switch("the plugin is gone until it is turned back; its socket stays", '"down"', one_of("down")),
    "plugin_late": Switch(
        "it registers so many seconds after its start, or never", 'SECONDS or "never"', seconds_or_never
    ),
    "plugin_deaf": Switch("it does not see that the kubelet was restarted", "true", flag),
    "unhealthy": Switch("the first so many devices are Unhealthy", "COUNT", whole(0, MOST_DEVICES)),
    "count": Switch("it reports so many devices, whatever there are", "COUNT", whole(0, MOST_DEVICES)),
    "allocate_error": Switch("every Allocate fails with these words", "TEXT", text),
    "allocate_s": Switch("every Allocate takes so many seconds", "SECONDS", number()),
    "allocate_hangs": Switch("no Allocate comes back until it is turned back", "true", flag),
}


def check(switch: str, value: Value) -> None:
    """Raises ``ControlError`` for a switch that there is not, or a value that it does not take."""
    if switch not in SWITCHES:
        raise UnknownName(f"there is no switch {switch}; there are: {', '.join(SWITCHES)}")
    if value is not None and (wrong := SWITCHES[switch].check(value)):
        raise BadValue(f"{switch}: {wrong}, got {value!r}")


def from_environment(env: Mapping[str, str]) -> dict[str, Value]:
    """``GPU_PLUGIN_UNHEALTHY=2`` and the like, for all resources. ``ControlError`` for one that means nothing."""
    for key in env:
        name = key.removeprefix(ENV_PREFIX).lower()
        # A Service called gpu-plugin gives its namespace's pods variables of its own.
        if key.startswith(ENV_PREFIX) and name != RESOURCES and not re.match(r"(service|port)(_|$)", name):
            check(name, None)
    return {name: read_value(env[key]) for name in SWITCHES if (key := ENV_PREFIX + name.upper()) in env}


def read_value(word: str) -> Value:
    """As JSON where it is any, else as text."""
    try:
        return json.loads(word)
    except ValueError:
        return word
