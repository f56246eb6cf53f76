"""Which endpoint stands in which slice, and what has to be written when some of them change. Pure.

By the rules of Kubernetes v1.37 staging/src/k8s.io/endpointslice/reconciler.go: an endpoint stays in its slice; new
ones go first into slices that have to be written anyway, the fullest first, then together into the one slice that they
fill best, and only then into new slices. So a change costs one or two slices, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fakes.controllers.endpoints import Ports
from fakes.controllers.objects import name_of
from harness.kube.port import Json

PER_SLICE = 100


@dataclass(frozen=True, slots=True)
class Wanted:
    """The endpoint that a pod should have, and the ports of the slice in which it belongs."""

    ports: Ports
    endpoint: Json


@dataclass(frozen=True, slots=True)
class Content:
    endpoints: list[Json]
    ports: Ports


@dataclass(slots=True)
class SlicePlan:
    update: list[tuple[Json, Content]] = field(default_factory=list)
    """A slice as it is, and what it should hold."""
    create: list[Content] = field(default_factory=list)
    delete: list[Json] = field(default_factory=list)


class Shelf:
    """The slices of one Service as they were last written or read."""

    def __init__(self) -> None:
        self.slices: dict[str, Json] = {}
        self._where: dict[str, str] = {}  # pod → slice

    @property
    def pods(self) -> Iterable[str]:
        return self._where

    def load(self, slices: Iterable[Json]) -> None:
        self.slices.clear()
        self._where.clear()
        for each in sorted(slices, key=name_of):
            self.put(each)

    def put(self, made: Json) -> None:
        """Of a slice that is there already only the endpoints that are other objects than before are looked at."""
        name = name_of(made)
        old = (self.slices.get(name) or {}).get("endpoints") or ()
        new = made.get("endpoints") or ()
        known, present = {id(entry) for entry in old}, {id(entry) for entry in new}
        self._unplace(name, (entry for entry in old if id(entry) not in present))
        self.slices[name] = made
        for entry in new:
            if id(entry) not in known:
                self._where[pod_of(entry)] = name

    def drop(self, name: str) -> None:
        if name in self.slices:
            self._unplace(name, self.slices.pop(name).get("endpoints") or ())

    def _unplace(self, name: str, endpoints: Iterable[Json]) -> None:
        for entry in endpoints:
            if self._where.get(pod_of(entry)) == name:
                del self._where[pod_of(entry)]

    def plan(self, changed: Iterable[str], wanted: Mapping[str, Wanted]) -> SlicePlan:
        """``changed``: the pods whose endpoints may have to move; all others stay as they are."""
        touched: dict[str, list[Json]] = {}
        left: dict[Ports, list[Json]] = {}
        for pod in sorted(changed):
            want = wanted.get(pod)
            if not self._kept(pod, want, touched) and want is not None:
                left.setdefault(want.ports, []).append(want.endpoint)
        plan = SlicePlan(delete=[s for n, s in self.slices.items() if not touched.get(n, s.get("endpoints"))])
        contents = {name: Content(e, ports_of(self.slices[name])) for name, e in touched.items() if e}
        for ports, endpoints in sorted(left.items(), key=lambda item: repr(item[0])):
            self._fill(ports, endpoints, contents, plan)
        plan.update = [(self.slices[name], content) for name, content in contents.items()]
        if len(plan.delete) == len(self.slices) and not plan.create:
            plan.create.append(Content([], ()))  # a Service without endpoints has one empty slice
        while plan.create and plan.delete:
            plan.update.append((plan.delete.pop(0), plan.create.pop(0)))
        return _without_idle(plan)

    def _kept(self, pod: str, want: Wanted | None, touched: dict[str, list[Json]]) -> bool:
        """Puts the endpoint right where it stands, or takes it out; False when it has no place (any more)."""
        name = self._where.get(pod)
        if name is None:
            return False
        endpoints = touched[name] if name in touched else list(self.slices[name].get("endpoints") or ())
        index = next((i for i, entry in enumerate(endpoints) if pod_of(entry) == pod), None)
        if index is None:
            return False
        stays = want is not None and want.ports == ports_of(self.slices[name])
        if stays and want is not None:
            if endpoints[index] == want.endpoint:
                return True
            endpoints[index] = want.endpoint
        else:
            del endpoints[index]
        touched[name] = endpoints
        return stays

    def _fill(self, ports: Ports, left: list[Json], contents: dict[str, Content], plan: SlicePlan) -> None:
        open_ones = [c for c in contents.values() if c.ports == ports]
        for content in sorted(open_ones, key=lambda c: -len(c.endpoints)):
            _move(left, content.endpoints)
        doomed = {name_of(s) for s in plan.delete}
        while left:
            chosen = self._best_fit(ports, len(left), doomed | contents.keys()) if len(left) < PER_SLICE else None
            if chosen is None:
                content = Content([], ports)
                plan.create.append(content)
            else:
                content = contents[chosen] = Content(list(self.slices[chosen].get("endpoints") or ()), ports)
            _move(left, content.endpoints)

    def _best_fit(self, ports: Ports, count: int, spoken_for: set[str]) -> str | None:
        """The slice that is nearest to full once ``count`` endpoints were added."""
        best: tuple[int, str] | None = None
        for name, each in self.slices.items():
            free = PER_SLICE - len(each.get("endpoints") or ()) - count
            if free >= 0 and name not in spoken_for and ports_of(each) == ports and (best is None or free < best[0]):
                best = (free, name)
        return None if best is None else best[1]


def _move(source: list[Json], into: list[Json]) -> None:
    room = max(0, PER_SLICE - len(into))
    into += source[:room]
    del source[:room]


def _without_idle(plan: SlicePlan) -> SlicePlan:
    """An empty slice that is to become an empty slice stays as it is."""
    plan.update = [
        (old, content)
        for old, content in plan.update
        if content.endpoints or old.get("endpoints") or content.ports != ports_of(old)
    ]
    return plan


def pod_of(endpoint: Json) -> str:
    return str((endpoint.get("targetRef") or {}).get("name") or "")


def ports_of(made: Json) -> Ports:
    return tuple(tuple(sorted(port.items())) for port in made.get("ports") or ())
