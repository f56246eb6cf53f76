"""An object of an experiment as the components of a target can take it: those of a real one know no time scale, and a
real kubelet takes all of it at its word. The same for what is applied at the start and what an action brings later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fakes.config import WorldConfig
from harness.faults.fidelity import CONTROL_PLANE, KIND, NODE
from harness.kube.port import Json, Resource
from harness.kube.server_clock import on_the_servers_clock
from harness.targets.base import Connection
from harness.targets.real_pods import for_real_kubelets


def as_applied(target: str, obj: Json, config: WorldConfig) -> Json:
    """A copy where something has to be another one; ``obj`` itself where ``target`` takes it as it is."""
    if target not in (CONTROL_PLANE, NODE, KIND):
        return obj
    made = on_the_servers_clock(obj, lambda scenario_s: scenario_s / config.time_scale)
    if config.called:
        made = readdressed(made, config.called)
    return made if target == CONTROL_PLANE else for_real_kubelets(made, config)


def readdressed(value: Any, called: Mapping[str, str]) -> Any:
    """A copy in which every address of a real component is the one that it has here."""
    match value:
        case str():
            for there, here in called.items():
                value = value.replace(there, here)
            return value
        case dict():
            return {key: readdressed(inner, called) for key, inner in value.items()}
        case list():
            return [readdressed(inner, called) for inner in value]
        case _:
            return value


def as_applied_later(
    connection: Connection, objects: Sequence[tuple[Resource, Json]]
) -> tuple[tuple[Resource, Json], ...]:
    """Of an action, to a target that is up."""
    if not connection.world:
        return tuple(objects)
    config = WorldConfig.read(Path(connection.world))
    return tuple((resource, as_applied(connection.target, obj, config)) for resource, obj in objects)
