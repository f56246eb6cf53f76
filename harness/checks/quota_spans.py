"""Times in which a promise of a queue did not hold, by whom it was made to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which one of the promises did not hold. ``what`` says it of ``name``, in words without the length."""

    name: str
    what: str
    start_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns


class Open:
    """Conditions by name, from when on they hold until they do not."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[int, str]] = {}
        self._found: list[Span] = []

    def at(self, t_ns: int, now: dict[str, str]) -> None:
        for name in [name for name in self._since if name not in now]:
            start, what = self._since.pop(name)
            self._found.append(Span(name, what, start, t_ns))
        for name, what in now.items():
            self._since.setdefault(name, (t_ns, what))

    def closed(self, until_ns: int) -> list[Span]:
        self.at(until_ns, {})
        return self._found
