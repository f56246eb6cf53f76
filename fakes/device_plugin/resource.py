"""A resource that the plugin offers, and the devices it is made of."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
MOST_DEVICES = 4096
"""Of one resource: their list still fits a message of the kubelet's."""
_IDS = uuid.UUID("b8c6ad1e-0b0f-4a8e-9a57-0c3f0f7c6f0e")
"""Under it the ids of devices are made: the same node has the same devices whenever its plugin starts."""


class BadResource(ValueError):
    """A resource as nobody can offer it."""


@dataclass(frozen=True, slots=True)
class Resource:
    """``count`` devices of extended resource ``name``, spread over ``numa_nodes``."""

    name: str
    count: int
    numa_nodes: int = 1

    @property
    def socket(self) -> str:
        """The name of its socket in the kubelet's folder."""
        return "gpu-harness-" + self.name.replace("/", "_") + ".sock"

    def ids(self, node: str, count: int | None = None) -> list[str]:
        """As NVIDIA's look: ``GPU-`` or ``MIG-`` and a UUID, at most 63 characters."""
        kind = "MIG" if "/mig-" in self.name else "GPU"
        count = self.count if count is None else count
        return [f"{kind}-{uuid.uuid5(_IDS, f'{node} {self.name} {index}')}" for index in range(count)]

    def numa_node(self, index: int) -> int:
        return index * self.numa_nodes // max(self.count, index + 1)

    def device_file(self, index: int) -> str:
        """Where a container finds the device."""
        folder = "/dev/nvidia-caps/nvidia-cap" if "/mig-" in self.name else "/dev/nvidia"
        return f"{folder}{index}"


def read_resources(texts: Sequence[str], numa_nodes: int = 1) -> list[Resource]:
    """Of ``NAME=COUNT``, several in one text with commas between. Raises ``BadResource``."""
    if numa_nodes < 1:
        raise BadResource(f"{numa_nodes} NUMA nodes: there is at least one")
    found: dict[str, Resource] = {}
    for text in (part.strip() for whole in texts for part in whole.split(",") if part.strip()):
        name, _, count = text.partition("=")
        if not _NAME.fullmatch(name):
            raise BadResource(f"{text!r}: the name must be DOMAIN/NAME, e.g. nvidia.com/gpu=4")
        if not count.isdecimal():
            raise BadResource(f"{text!r}: after the name comes how many there are, e.g. {name}=4")
        if len(count) > len(str(MOST_DEVICES)) or int(count) > MOST_DEVICES:
            raise BadResource(f"{text!r}: a node has at most {MOST_DEVICES} of them")
        if name in found:
            raise BadResource(f"{name} is there twice")
        found[name] = Resource(name, int(count), numa_nodes)
    if not found:
        raise BadResource("no resource is named; e.g. nvidia.com/gpu=4")
    return list(found.values())


def preferred(
    available: Sequence[str], must: Collection[str], size: int, numa_node_of: dict[str, int], order: Sequence[str]
) -> list[str]:
    """``size`` of ``available``: those that must be among them, then as few NUMA nodes as possible, lowest index first.
    An id that the plugin does not know comes last."""
    place = {id: index for index, id in enumerate(order)}

    def rank(id: str) -> tuple[int, str]:
        return place.get(id, len(place)), id

    chosen = sorted(must, key=rank)[:size]
    by_numa_node: dict[int, list[str]] = {}
    for id in sorted(set(available) - set(chosen), key=rank):
        by_numa_node.setdefault(numa_node_of.get(id, -1), []).append(id)
    begun = {numa_node_of.get(id, -1) for id in chosen}
    missing = size - len(chosen)
    # A node of which some are taken already comes first, then one that has all that is missing, then the largest.
    for node in sorted(by_numa_node, key=lambda n: (n not in begun, len(by_numa_node[n]) < missing, n)):
        chosen += by_numa_node[node][: size - len(chosen)]
    return chosen
