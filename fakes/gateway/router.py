"""Which replica takes the next request: least in flight, then least recently used. Pure state, no sockets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from fakes.gateway.prefixes import PrefixIndex
from fakes.nodes.address import listen_address
from harness.kube.port import Json

UNEVEN_MAX = 4
"""So many requests more than the least loaded one a replica may have, and still be preferred for what it has seen."""


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
    """A change costs what it changes, however many replicas there are. ``keep_terminating`` plants the bug of a router
    that sends to a pod until its endpoint is gone."""

    rng: Random
    keep_terminating: bool = False
    before_ready: bool = False
    """Plants the bug of a router that sends to every address it hears of."""
    in_flight_max: int = 0
    prefixes: PrefixIndex | None = None
    """With it, who has seen a request's beginning goes first."""
    first_only: bool = False
    """Plants another: who was not there at the first request is never sent anything."""
    backends: dict[str, Backend] = field(default_factory=dict)
    _slices: dict[str, dict[int, Json]] = field(default_factory=dict)
    """The endpoints of each slice, by identity: those that come again as the same objects have not changed."""
    _endpoints: dict[str, dict[str, Json]] = field(default_factory=dict)
    """The endpoints of each pod, by slice; while one moves there may be two."""
    _uses: int = 0
    _first: frozenset[str] | None = None

    def slice_changed(self, name: str, endpoints: Iterable[Json], pod: Callable[[str], Json | None]) -> bool:
        """``pod`` finds a pod of the service's namespace by its name; a slice that is gone has no endpoints. True when
        a replica lost its address."""
        before, now = self._slices.pop(name, {}), {id(e): e for e in endpoints}
        if now:
            self._slices[name] = now
        lost = False
        left = {_pod_of(e): None for key, e in before.items() if key not in now}
        come = {_pod_of(e): e for key, e in now.items() if key not in before}
        for each in {**left, **come}:
            places = self._endpoints.setdefault(each, {})
            places.pop(name, None)
            if each in come:
                places[name] = come[each]
            elif not places:
                del self._endpoints[each]
            lost |= self.pod_changed(each, pod(each))
        return lost

    def pod_changed(self, name: str, pod: Json | None) -> bool:
        """True when the replica lost the address that it had."""
        backend, places = self.backends.get(name), self._endpoints.get(name)
        before = backend.address if backend is not None else None
        if places is None or pod is None:
            if backend is not None:
                self.backends.pop(name).routable = False
                if self.prefixes is not None:
                    self.prefixes.forget(name)
            return before is not None
        endpoint = next(reversed(places.values()))
        if backend is None:
            backend = self.backends[name] = Backend(name, str(endpoint.get("nodeName") or ""), tie=self.rng.random())
        backend.address = listen_address(pod)
        backend.routable = backend.address is not None and self._wanted(endpoint.get("conditions") or {})
        return before is not None and before != backend.address

    def _wanted(self, conditions: Json) -> bool:
        terminating = bool(conditions.get("terminating"))
        if terminating:
            return self.keep_terminating
        return self.before_ready or conditions.get("ready") is not False  # absent means ready

    def routable(self) -> frozenset[str]:
        return frozenset(pod for pod, backend in self.backends.items() if backend.routable)

    def pick(self, exclude: Collection[Backend] = (), hashes: Sequence[int] = ()) -> Backend | None:
        """``hashes`` are those of the request's beginning."""
        if self.first_only and self._first is None:
            self._first = self.routable() or None
        able = [b for b in self.backends.values() if self._may_take(b) and b not in exclude and not self._full(b)]
        if not able:
            return None
        chosen = min(able, key=lambda b: (b.in_flight, b.last_used, b.tie))
        if self.prefixes is not None and hashes:
            near = [b for b in able if b.in_flight <= chosen.in_flight + UNEVEN_MAX]
            known = {b.pod: self.prefixes.matched(b.pod, hashes) for b in near}
            chosen = min(near, key=lambda b: (-known[b.pod], b.in_flight, b.last_used, b.tie))
            self.prefixes.note(chosen.pod, hashes)
        self._uses += 1
        chosen.last_used = self._uses
        return chosen

    def _may_take(self, backend: Backend) -> bool:
        return backend.routable and (self._first is None or backend.pod in self._first)

    def _full(self, backend: Backend) -> bool:
        return 0 < self.in_flight_max <= backend.in_flight

    def busy(self, exclude: Collection[Backend] = ()) -> bool:
        """Somebody could take a request, if only it had room."""
        return any(self._may_take(b) and b not in exclude for b in self.backends.values())


def _pod_of(endpoint: Json) -> str:
    return str((endpoint.get("targetRef") or {}).get("name") or "")
