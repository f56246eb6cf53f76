"""What an autoscaler may ask about pods: the custom metrics API, in process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


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
