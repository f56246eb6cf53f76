"""What a rule is, and what it says of an object."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.errors import Where
from harness.inspection.objects import Objects
from harness.inspection.seen import Seen
from harness.spec.document import KeyPath


class Severity(enum.StrEnum):
    """ERROR: it fails when its hour comes. WARNING: whether it does depends on what is not in the objects."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a rule saw: in which object, at which key, and the words for it."""

    object: Seen
    at: KeyPath
    saw: str
    right: str = ""
    """Instead of the rule's own, where it depends on what was seen."""
    others: tuple[Seen, ...] = ()
    """Other objects that have to do with it."""


Look = Callable[[Objects], Iterator[Sighting]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One problem that can be seen before anything runs."""

    id: str
    severity: Severity
    sentence: str
    """The problem, for any object."""
    right: str
    todo: str
    incident: str
    """What came of it, in a sentence."""
    source: str
    """Where that can be read."""
    looks_at: tuple[str, ...]
    look: Look
    live_only: bool = False
    unless_known: Callable[[Objects], str] | None = None
    """Why it cannot judge these objects; empty where it can."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of one object."""

    rule: Rule
    sighting: Sighting
    accepted: str | None = None
    """Why somebody accepts it."""

    @property
    def where(self) -> Where:
        return self.sighting.object.where(*self.sighting.at)

    @property
    def right(self) -> str:
        return self.sighting.right or self.rule.right
