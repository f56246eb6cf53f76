"""CPU and memory of a node's containers, as its kubelet tells whoever scrapes it for resource metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CPU_ANNOTATION = "gpu-harness.dev/cpu-milli"
MEMORY_ANNOTATION = "gpu-harness.dev/memory-mib"
"""What each container of the pod takes: thousandths of a core, and MiB."""
IDLE_MILLI = 1
USED_MIB = 64
"""Of a pod that does not say."""
ENGINE_MILLI = 1000
"""Of a model server while its engine steps: one core, which a real one's main loop keeps busy."""
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ContainerUse:
    """``running_since`` as the API writes it."""

    namespace: str
    pod: str
    container: str
    running_since: str
    cpu_milli: float
    memory_bytes: int


def memory_bytes(annotations: Mapping[str, str]) -> int:
    return int(annotations.get(MEMORY_ANNOTATION, USED_MIB)) * MIB


def cpu_milli(annotations: Mapping[str, str], busy: float) -> float:
    """``busy``: the share of the time that the engine of a model server ran; what the pod itself says comes first."""
    if CPU_ANNOTATION in annotations:
        return float(annotations[CPU_ANNOTATION])
    return max(IDLE_MILLI, busy * ENGINE_MILLI)
