"""The GPUs of a node as a monitoring agent on it sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

UTIL_ANNOTATION = "gpu-harness.dev/gpu-util"
MEMORY_ANNOTATION = "gpu-harness.dev/gpu-memory-ratio"
"""What a pod that is no model server does to its GPUs: percent of the time busy, share of the memory held."""


@dataclass(frozen=True, slots=True)
class GpuUse:
    """Shares of 1: of the last second that something ran on it, and of its memory that is held."""

    busy: float = 0.0
    memory: float = 0.0


@runtime_checkable
class UsesGpus(Protocol):
    """A process that says what it does to each GPU it was given."""

    def gpu_use(self) -> GpuUse: ...


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device; the last three are empty while nobody holds it."""

    index: int
    id: str
    healthy: bool
    use: GpuUse = GpuUse()
    namespace: str = ""
    pod: str = ""
    container: str = ""


def annotated_use(annotations: Mapping[str, str]) -> GpuUse:
    return GpuUse(float(annotations.get(UTIL_ANNOTATION, 0)) / 100, float(annotations.get(MEMORY_ANNOTATION, 0)))
