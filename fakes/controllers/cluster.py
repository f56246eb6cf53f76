"""The scheduler's picture of the cluster: every node with its free room, kept as nodes and pods change.

Looking for a place costs little more than the nodes that changed since a pod of the same kind last looked: what each
node answered such a pod is remembered, and asked again only where something has changed.
"""

from __future__ import annotations

import heapq
import json
from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from fakes.controllers.informer import Key, key_of
from fakes.controllers.objects import is_terminating, name_of, namespace_of, node_of
from fakes.controllers.placement import NodeRoom, Rank, Refusal, holds_room, owner_uid, rank, refuse_asked
from fakes.controllers.resources import Amounts, requested
from fakes.controllers.topology import Neighbourhood, Placed, is_constrained, repels
from harness.kube.port import Json

REMEMBERED_MAX = 64
"""Kinds of pods whose answers are kept; the one that was asked for longest ago goes first."""


@dataclass(slots=True)
class _Ranking:
    """What each node answers one kind of pod."""

    refusals: dict[str, Refusal] = field(default_factory=dict)
    ranks: dict[str, Rank] = field(default_factory=dict)
    best_first: list[Rank] = field(default_factory=list)
    """A heap; an entry counts while it is what ``ranks`` says."""
    changed: dict[str, None] = field(default_factory=dict)
    """Nodes that have to be asked again."""

    def refused(self, name: str, why: Refusal) -> None:
        self.ranks.pop(name, None)
        self.refusals[name] = why

    def fits(self, name: str, found: Rank) -> None:
        self.refusals.pop(name, None)
        if self.ranks.get(name) != found:
            self.ranks[name] = found
            heapq.heappush(self.best_first, found)

    def forget(self, name: str) -> None:
        self.ranks.pop(name, None)
        self.refusals.pop(name, None)

    def best(self) -> str | None:
        heap = self.best_first
        while heap and self.ranks.get(heap[0][2]) != heap[0]:
            heapq.heappop(heap)
        return heap[0][2] if heap else None


class Cluster:
    """Placements can be tried and taken back. A pod holds room where it was last said to be."""

    def __init__(self, nodes: Iterable[Json] = (), pods: Iterable[Json] = ()) -> None:
        self.rooms: dict[str, NodeRoom] = {}
        self._held: dict[Key, tuple[str, Json]] = {}
        self._pods_on: dict[str, dict[Key, Json]] = {}
        self._repelling: dict[Key, tuple[str, Json]] = {}
        self._rankings: OrderedDict[str, _Ranking] = OrderedDict()
        for node in nodes:
            self.node_changed(node)
        for pod in pods:
            self.pod_changed(pod)

    def node_changed(self, node: Json) -> None:
        """A terminating node takes nobody."""
        name = name_of(node)
        if is_terminating(node):
            self.node_gone(name)
            return
        room = self.rooms[name] = NodeRoom.of(node)
        for pod in self._pods_on.get(name, {}).values():
            room.hold(pod)
        self._touch(name)

    def node_gone(self, name: str) -> None:
        if self.rooms.pop(name, None) is not None:
            self._touch(name)

    def pod_changed(self, pod: Json) -> None:
        self._settle(pod, node_of(pod) if holds_room(pod) else "")

    def pod_gone(self, pod: Json) -> None:
        self._settle(pod, "")

    def place(self, pod: Json, node: str) -> None:
        self._settle(pod, node)

    def take_back(self, pod: Json, node: str) -> None:
        self._settle(pod, "")

    def pods_on(self, node: str) -> Collection[Json]:
        """Live: those that hold room on it."""
        return self._pods_on.get(node, {}).values()

    def choose(self, pod: Json) -> str | dict[str, Refusal]:
        """The name of the best node, or every node's refusal."""
        asked = requested(pod)
        if self._repelling or is_constrained(pod):
            return self._choose_by_neighbours(pod, asked)
        ranking = self._ranking(pod)
        for name in ranking.changed:
            self._ask(name, pod, asked, ranking)
        ranking.changed.clear()
        best = ranking.best()
        return dict(ranking.refusals) if best is None else best

    def refuse_without(self, pod: Json, node: str, gone: Collection[int]) -> Refusal | None:
        """What the node would answer if the pods with these ids were not there."""
        room = self.rooms[node].copy()
        for held in self.pods_on(node):
            if id(held) in gone:
                room.hold(held, -1)
        refusal = refuse_asked(pod, requested(pod), room)
        if refusal is not None or not (self._repelling or is_constrained(pod)):
            return refusal
        return self._neighbourhood(pod, gone).refuse(room.node)

    def _choose_by_neighbours(self, pod: Json, asked: Amounts) -> str | dict[str, Refusal]:
        """Nothing can be remembered here: each placement may change what all nodes answer."""
        around = self._neighbourhood(pod, ())
        refusals: dict[str, Refusal] = {}
        ranks: list[Rank] = []
        for name, room in self.rooms.items():
            refusal = refuse_asked(pod, asked, room) or around.refuse(room.node)
            if refusal is not None:
                refusals[name] = refusal
                continue
            fullness, siblings, _ = rank(pod, asked, room)
            ranks.append((round(fullness + around.cost(room.node), 9), siblings, name))
        return min(ranks)[2] if ranks else refusals

    def _neighbourhood(self, pod: Json, gone: Collection[int]) -> Neighbourhood:
        def placed(pods: Iterable[tuple[str, Json]]) -> list[Placed]:
            return [(p, self.rooms[n].node) for n, p in pods if n in self.rooms and id(p) not in gone]

        return Neighbourhood(pod, self.rooms, placed(self._held.values()), placed(self._repelling.values()))

    def _ask(self, name: str, pod: Json, asked: Amounts, ranking: _Ranking) -> None:
        room = self.rooms.get(name)
        if room is None:
            ranking.forget(name)
        elif (why := refuse_asked(pod, asked, room)) is not None:
            ranking.refused(name, why)
        else:
            ranking.fits(name, rank(pod, asked, room))

    def _ranking(self, pod: Json) -> _Ranking:
        kind = _kind(pod)
        found = self._rankings.get(kind)
        if found is None:
            found = self._rankings[kind] = _Ranking(changed=dict.fromkeys(self.rooms))
            if len(self._rankings) > REMEMBERED_MAX:
                self._rankings.popitem(last=False)
        elif len(found.best_first) > 4 * len(self.rooms) + 64:
            found.best_first = sorted(found.ranks.values())
        self._rankings.move_to_end(kind)
        return found

    def _settle(self, pod: Json, node: str) -> None:
        key = key_of(pod)
        before = self._held.get(key)
        if before is not None and before[0] == node and before[1]["spec"] is pod["spec"]:
            self._held[key] = (node, pod)
            self._pods_on[node][key] = pod
            return
        if before is not None:
            del self._held[key]
            there, held = before
            del self._pods_on[there][key]
            self._repelling.pop(key, None)
            self._hold(there, held, -1)
        if node:
            self._held[key] = (node, pod)
            self._pods_on.setdefault(node, {})[key] = pod
            if repels(pod):
                self._repelling[key] = (node, pod)
            self._hold(node, pod, 1)

    def _hold(self, node: str, pod: Json, times: int) -> None:
        room = self.rooms.get(node)
        if room is not None:
            room.hold(pod, times)
            self._touch(node)

    def _touch(self, node: str) -> None:
        for ranking in self._rankings.values():
            ranking.changed[node] = None


def _kind(pod: Json) -> str:
    """Pods of one kind get the same answer from every node: they differ in nothing but their names, and in those of the
    token volume that each one has of its own."""
    spec = {k: v for k, v in pod["spec"].items() if k not in ("nodeName", "volumes")}
    for part in ("containers", "initContainers"):
        if part in spec:
            spec[part] = [{k: v for k, v in c.items() if k != "volumeMounts"} for c in spec[part]]
    labels = pod["metadata"].get("labels")
    return json.dumps([namespace_of(pod), labels, owner_uid(pod), spec], separators=(",", ":"))
