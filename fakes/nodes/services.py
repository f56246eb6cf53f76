"""What the parts of one kubelet share."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from fakes.clock import WallClock
from fakes.config import PlantedBug
from fakes.nodes.client import NodeClient
from fakes.nodes.devices import DeviceManager
from fakes.nodes.events import EventRecorder
from fakes.nodes.findings import Findings
from fakes.nodes.images import ImageStore
from fakes.nodes.logs import PodLogs
from fakes.nodes.machine import Machine
from fakes.nodes.pressure import NodePressure
from fakes.nodes.runtime import Runtime
from fakes.nodes.sync_loop import SyncLoop
from fakes.timing import Timing


@dataclass(frozen=True, slots=True)
class NodeServices:
    machine: Machine
    client: NodeClient
    timing: Timing
    wall: WallClock
    rng: Random
    runtime: Runtime
    images: ImageStore
    devices: DeviceManager
    events: EventRecorder
    sync: SyncLoop
    logs: PodLogs
    pressure: NodePressure
    findings: Findings
    bugs: frozenset[PlantedBug]
