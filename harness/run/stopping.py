"""Whether a run must stop by itself: it does more harm than it was meant to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from harness.clock import NS_PER_S
from harness.spec.safety import StopSpec

ENDED_MIN = 10
"""Fewer requests than these say nothing about a share of them."""


class Ended(Protocol):
    def ended_since(self, since_ns: int) -> tuple[int, int]:
        """Requests that ended since then, and how many of them not ok."""
        ...


class StopConditions:
    """Asked at every look of the supervisor; ``targets`` are the nodes that faults were planned on."""

    def __init__(self, spec: StopSpec, targets: Collection[str]) -> None:
        self._spec = spec
        self._targets = frozenset(targets)
        self._ready_at_start: frozenset[str] | None = None

    def begin(self, nodes_ready: Mapping[str, bool]) -> None:
        self._ready_at_start = frozenset(name for name, ready in nodes_ready.items() if ready)

    def reason(self, now_ns: int, load: Ended, nodes_ready: Callable[[], Mapping[str, bool]]) -> str | None:
        """Why the run must stop now. A node that is gone was taken away by the system: that is no trouble. Who is ready
        is asked only where it matters, for that means going through all nodes."""
        return self._too_many_lost(now_ns, load) or self._beyond_targets(nodes_ready)

    def _too_many_lost(self, now_ns: int, load: Ended) -> str | None:
        limit = self._spec.not_ok_ratio_max
        if limit is None:
            return None
        ended, not_ok = load.ended_since(now_ns - round(self._spec.for_s * NS_PER_S))
        if ended < ENDED_MIN or not_ok <= limit * ended:
            return None
        return (
            f"{not_ok} of the {ended} requests that ended within {self._spec.for_s:g} s were not ok, "
            f"more than {limit:.0%} (guards.stop_when.not_ok_ratio_max)"
        )

    def _beyond_targets(self, nodes_ready: Callable[[], Mapping[str, bool]]) -> str | None:
        if not self._spec.nodes_not_ready_beyond_targets or self._ready_at_start is None:
            return None
        lost = sorted(
            name
            for name, ready in nodes_ready().items()
            if not ready and name in self._ready_at_start and name not in self._targets
        )
        if not lost:
            return None
        where = "guards.stop_when.nodes_not_ready_beyond_targets"
        return f"{', '.join(lost)} not Ready, where no fault was planned ({where})"
