"""All recorded object events of a run, and what is asked of them again and again, worked out once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from harness.history.tables import ObjectEvent, ObjectEventType

if TYPE_CHECKING:
    from harness.history.reader import History

T = TypeVar("T")


class Recording(tuple[ObjectEvent, ...]):
    """In the order in which they were received. It never changes, so neither do answers about it."""

    def __new__(cls, events: tuple[ObjectEvent, ...] = ()) -> Recording:
        self = super().__new__(cls, events)
        self._kept = {}
        self._by_kind = None
        return self

    _kept: dict[object, Any]
    _by_kind: dict[str, list[ObjectEvent]] | None

    def of_kind(self, kind: str) -> list[ObjectEvent]:
        if self._by_kind is None:
            self._by_kind = {}
            for event in self:
                self._by_kind.setdefault(event.kind, []).append(event)
        return self._by_kind.get(kind, [])

    @property
    def gaps(self) -> tuple[ObjectEvent, ...]:
        return self.kept("gaps", lambda: tuple(e for e in self if e.type is ObjectEventType.GAP))

    def kept(self, key: object, work: Callable[[], T]) -> T:
        """What ``work`` answered the first time."""
        if key not in self._kept:
            self._kept[key] = work()
        answer: T = self._kept[key]
        return answer


def once(work: Callable[[History], T]) -> Callable[[History], T]:
    """For what more than one check, or the report too, asks of a history: it is worked out the first time."""

    @wraps(work)
    def ask(history: History) -> T:
        return history.objects.kept(work, lambda: work(history))

    return ask
