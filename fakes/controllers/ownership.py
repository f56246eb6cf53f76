"""Who owns whom: an index of owner references over all objects that can own or be owned. Pure but for its own state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from fakes.controllers.informer import key_of
from fakes.controllers.objects import uid_of
from harness.kube.port import EventType, Json, Resource

Reference = tuple[Resource, str, str]
"""(resource, namespace, name)."""


class Ownership:
    def __init__(self) -> None:
        self._alive: dict[str, Reference] = {}
        self._owned: dict[str, dict[Reference, None]] = defaultdict(dict)

    def note(self, resource: Resource, type: EventType, new: Json, old: Json | None) -> None:
        if type is EventType.MODIFIED and old is not None and owner_references(old) == owner_references(new):
            return
        place: Reference = (resource, *key_of(new))
        if old is not None:
            for owner in owner_uids(old):
                self._unlink(owner, place)
        if type is EventType.DELETED:
            self._alive.pop(uid_of(new), None)
            for owner in owner_uids(new):
                self._unlink(owner, place)
            return
        self._alive[uid_of(new)] = place
        for owner in owner_uids(new):
            self._owned[owner][place] = None

    def _unlink(self, owner: str, place: Reference) -> None:
        owned = self._owned.get(owner)
        if owned is not None:
            owned.pop(place, None)
            if not owned:
                del self._owned[owner]

    def is_alive(self, uid: str) -> bool:
        return uid in self._alive

    def place_of(self, uid: str) -> Reference | None:
        return self._alive.get(uid)

    def owned_by(self, uid: str) -> list[Reference]:
        return list(self._owned.get(uid, ()))


def owner_uids(obj: Json) -> list[str]:
    return [str(r["uid"]) for r in owner_references(obj)]


def owner_references(obj: Json) -> list[Json]:
    return obj["metadata"].get("ownerReferences") or []


def without_owners(obj: Json, gone: Iterable[str]) -> list[Json]:
    lost = set(gone)
    return [r for r in owner_references(obj) if r["uid"] not in lost]
