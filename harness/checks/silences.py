"""Pods that were called Ready while they gave nobody a token: ready in name only, and no capacity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.causes import NODE_DEAD, SILENT
from harness.checks.departures import PodFate, pod_fates
from harness.checks.losses import losses
from harness.history.recording import once

if TYPE_CHECKING:
    from harness.history.reader import History


@dataclass(frozen=True, slots=True)
class Silence:
    """From the first request that waited in vain to the pod's going, or the recording's end."""

    pod: str
    start_ns: int
    end_ns: int
    lost: int
    ended: bool
    """Whether the pod was asked to go or ended; else it is silent to the end."""


@once
def silences(history: History) -> tuple[Silence, ...]:
    """In order of their start. Of pods whose losses have that cause (``harness/checks/causes.py``), one each."""
    fates = pod_fates(history)
    fell: dict[str, tuple[PodFate, list[int]]] = {}
    for request, cause in losses(history):
        fate = fates.of(request)  # these causes are of nothing but pods that were recorded
        if cause.name in (SILENT, NODE_DEAD) and fate is not None and cause.fell_ns is not None:
            fell.setdefault(fate.life.uid, (fate, []))[1].append(cause.fell_ns)
    found = []
    for fate, times in fell.values():
        start_ns = min(times)
        went = (fate.asked, fate.ended, fate.life.gone)
        ends = [event.t_ns for event in went if event is not None and event.t_ns > start_ns]
        end_ns = min(ends, default=history.recorded_until_ns)
        found.append(Silence(fate.name, start_ns, end_ns, len(times), bool(ends)))
    return tuple(sorted(found, key=lambda silence: (silence.start_ns, silence.pod)))
