"""Counts that follow the changes: what a controller would otherwise find out by looking at all its pods again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from fakes.controllers.informer import Key

F = TypeVar("F", bound=Hashable)


class Tally(Generic[F]):
    """How many objects show each face; a face is what of an object is counted."""

    def __init__(self) -> None:
        self._faces: dict[Key, F] = {}
        self.counts: Counter[F] = Counter()

    def __len__(self) -> int:
        return len(self._faces)

    def face(self, key: Key) -> F | None:
        return self._faces.get(key)

    def items(self) -> Iterable[tuple[Key, F]]:
        return self._faces.items()

    def put(self, key: Key, face: F) -> None:
        before = self._faces.get(key)
        if before == face:
            return
        if before is not None:
            self._uncount(before)
        self._faces[key] = face
        self.counts[face] += 1

    def drop(self, key: Key) -> None:
        face = self._faces.pop(key, None)
        if face is not None:
            self._uncount(face)

    def _uncount(self, face: F) -> None:
        self.counts[face] -= 1
        if not self.counts[face]:
            del self.counts[face]
