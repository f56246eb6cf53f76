"""Which replica takes the next request: least in flight, then least recently used. Pure state, no sockets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

from fakes.nodes.address import listen_address
from harness.kube.port import Json


@dataclass(slots=True, eq=False)
class Backend:
    """A replica. It outlives its endpoint while requests of it are in flight."""

    pod: str
    node: str
    address: tuple[str, int] | None = None
    routable: bool = False
    in_flight: int = 0
    last_used: int = 0
    tie: float = 0.0


@dataclass(slots=True)
class Router:
    """``keep_terminating`` plants the bug of a router that sends to a pod until its endpoint is gone."""

    rng: Random
    keep_terminating: bool = False
    backends: dict[str, Backend] = field(default_factory=dict)
    _uses: int = 0

    def refresh(self, slices: Iterable[Json], pods: Mapping[str, Json]) -> None:
        """From all EndpointSlices of the service and the pods of its namespace, by name."""
        present: set[str] = set()
        for endpoint in (e for s in slices for e in s.get("endpoints") or ()):
            pod = str((endpoint.get("targetRef") or {}).get("name") or "")
            if pod not in pods:
                continue
            present.add(pod)
            backend = self.backends.get(pod)
            if backend is None:
                backend = self.backends[pod] = Backend(pod, str(endpoint.get("nodeName") or ""), tie=self.rng.random())
            backend.address = listen_address(pods[pod])
            backend.routable = backend.address is not None and self._wanted(endpoint.get("conditions") or {})
        for pod in [p for p in self.backends if p not in present]:
            self.backends.pop(pod).routable = False

    def _wanted(self, conditions: Json) -> bool:
        terminating = bool(conditions.get("terminating"))
        if terminating:
            return self.keep_terminating
        return conditions.get("ready") is not False  # absent means ready

    def pick(self, exclude: Collection[Backend] = ()) -> Backend | None:
        able = [b for b in self.backends.values() if b.routable and b not in exclude]
        if not able:
            return None
        chosen = min(able, key=lambda b: (b.in_flight, b.last_used, b.tie))
        self._uses += 1
        chosen.last_used = self._uses
        return chosen
