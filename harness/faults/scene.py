"""What a cluster looks like to a fault: to its pick before anything is touched, and right before its injection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.faults.pick import FleetNode


@dataclass(frozen=True, slots=True)
class FleetPod:
    """What a pick needs to know of a pod. ``name`` is ``namespace/name``."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    node: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a pick may know, so that a plan can be printed before anything is broken.

    ``pods`` is None before a run: nobody knows their names yet. ``objects`` are those that each manifest of the
    experiment's actions brings. ``running``: whether it is the cluster as it runs, and not as it is planned.
    """

    nodes: Sequence[FleetNode] = ()
    pods: Sequence[FleetPod] | None = None
    pools: Sequence[str] = ()
    objects: Mapping[str, Sequence[str]] = field(default_factory=dict)
    running: bool = False
