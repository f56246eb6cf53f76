"""What an autoscaler may ask about pods: the custom metrics API, in process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from harness.kube.port import Json


@dataclass(frozen=True, slots=True)
class PodMetric:
    """``t`` is when the value was read from the pod, not when it was asked for."""

    pod: str
    value: float
    t: datetime
    window_s: float


class MetricsReader(Protocol):
    async def pod_metric(self, namespace: str, selector: str, metric: str) -> list[PodMetric]:
        """One value for each pod of the selector that has one. Empty when none has: not known is not 0."""
        ...


class MetricsApi(Protocol):
    """An aggregated API of metrics, asked in process as the API server would ask it."""

    @property
    def group(self) -> str: ...

    async def handle(self, path: str, query: Mapping[str, str]) -> tuple[int, Json]:
        """``path`` is what follows /apis/GROUP/VERSION/; the answer is a status and a list of values, or a Status."""
        ...
