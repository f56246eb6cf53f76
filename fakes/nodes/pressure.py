"""Which pressures a node is under, as its own eviction manager sees it. Set by ``EvictionManager``, read by all."""

from __future__ import annotations

from dataclasses import dataclass, field

PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(slots=True)
class NodePressure:
    _met: set[str] = field(default_factory=set)

    @property
    def met(self) -> tuple[str, ...]:
        return tuple(kind for kind in PRESSURES if kind in self._met)

    def set(self, kind: str, on: bool) -> bool:
        """Whether that changed anything."""
        changed = on is not (kind in self._met)
        if on:
            self._met.add(kind)
        else:
            self._met.discard(kind)
        return changed
