"""Objects as a recorder sees them come, change and go: the first part of a story.

They look as the API serves them; what happens before second 0 is LISTED, as a recorder that starts before the load sees
it.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from harness.history.tables import ObjectEvent, ObjectEventType

Json = dict[str, Any]
NAMESPACE = "inference"
LOAD_START_NS = 1_000_000_000
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class ToldObjects:
    """Every method takes the scenario second since the load began at which the recorder saw it."""

    time_scale: float = 10.0
    api_ahead_s: float = 0.0
    """Clock seconds by which the API server's clock is ahead of the harness's."""
    _events: list[tuple[float, int, str, ObjectEventType, Json, float | None, str | None]] = field(default_factory=list)
    _now: dict[tuple[str, str], Json] = field(default_factory=dict)
    _gone: Counter[tuple[str, str]] = field(default_factory=Counter)

    def ns(self, at_s: float) -> int:
        return LOAD_START_NS + round(at_s / self.time_scale * 1e9)

    def stamp(self, at_s: float, ahead_s: float = 0.0) -> str:
        """What a clock shows in the API's whole seconds, so many clock seconds ahead of the harness's."""
        return (EPOCH + timedelta(seconds=self.ns(at_s) // 10**9 + ahead_s)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def put(self, at_s: float, kind: str, name: str, obj: Json, namespace: str | None = NAMESPACE) -> None:
        """What comes after one of its name was removed is another object."""
        known = copy.deepcopy(obj)
        meta = known.setdefault("metadata", {})
        again = f"-{before + 1}" if (before := self._gone[kind, name]) else ""
        meta |= {"name": name, "uid": f"uid-{kind.lower()}-{name}{again}"}
        meta |= {"namespace": namespace} if namespace else {}
        if at_s >= 0:
            meta["creationTimestamp"] = self.stamp(at_s, self.api_ahead_s)
        self._now[kind, name] = known
        self._say(at_s, kind, ObjectEventType.LISTED if at_s < 0 else ObjectEventType.ADDED, known)

    def change(self, at_s: float, kind: str, name: str, edit: Callable[[Json], object]) -> None:
        edit(self._now[kind, name])
        self._say(at_s, kind, ObjectEventType.MODIFIED, self._now[kind, name])

    def remove(self, at_s: float, kind: str, name: str) -> None:
        self._say(at_s, kind, ObjectEventType.DELETED, self._now.pop((kind, name)))
        self._gone[kind, name] += 1

    def unseen(self, kind: str, name: str, edit: Callable[[Json], object] | None = None) -> None:
        """Changes it, or without ``edit`` removes it, while nobody watches; a gap's list tells of it."""
        if edit is None:
            self._now.pop((kind, name))
        else:
            edit(self._now[kind, name])

    def gap(self, since_s: float, until_s: float, kind: str, reason: str = "410 Gone") -> None:
        """The recorder was blind; what is there afterwards is listed again."""
        self._events.append((until_s, len(self._events), kind, ObjectEventType.GAP, {}, since_s, reason))
        for (known, _), obj in list(self._now.items()):
            if known == kind:
                self._say(until_s, kind, ObjectEventType.LISTED, obj)

    def _say(self, at_s: float, kind: str, what: ObjectEventType, obj: Json) -> None:
        self._events.append((at_s, len(self._events), kind, what, copy.deepcopy(obj), None, None))

    def _recorded(self) -> tuple[ObjectEvent, ...]:
        """Resource versions count on in the order of time, as one API server would give them."""
        ordered = sorted(self._events, key=lambda event: (event[0], event[1]))
        recorded: list[ObjectEvent] = []
        for index, (at_s, _, kind, what, obj, since_s, reason) in enumerate(ordered):
            if what is not ObjectEventType.LISTED and obj:
                obj["metadata"]["resourceVersion"] = str(1000 + index)
            since = None if since_s is None else self.ns(since_s)
            recorded.append(ObjectEvent(index, self.ns(at_s), kind, what, obj, since, reason))
        return tuple(recorded)
