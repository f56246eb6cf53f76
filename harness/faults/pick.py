"""Which nodes a fault hits: pure and seeded, so a plan can be printed and compared before anything is broken."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from harness.errors import BadInput

_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_SET = re.compile(rf"^({_WORD})\s+(in|notin)\s*\(([^()]*)\)$")
_EQUALITY = re.compile(rf"^({_WORD})\s*(==|=|!=)\s*({_WORD})?$")
_EXISTS = re.compile(rf"^(!?)\s*({_WORD})$")
_FORMS = "key=value, key!=value, key in (a,b), key notin (a,b), key, !key; joined by commas"


@dataclass(frozen=True, slots=True)
class FleetNode:
    """What a pick needs to know of a node."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector. ``values`` is None where only the key's presence counts."""

    key: str
    negated: bool
    values: frozenset[str] | None

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.values is None:
            return (self.key in labels) is not self.negated
        # As in Kubernetes: `!=` and `notin` also match objects that lack the key.
        return (labels.get(self.key) in self.values) is not self.negated


@dataclass(frozen=True, slots=True)
class Selector:
    """A Kubernetes label selector; the empty one matches everything, as it does there."""

    text: str
    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse_selector(text: str) -> Selector:
    """Raises ``BadInput`` with the forms that would be right."""
    terms = [term.strip() for term in re.split(r",(?![^()]*\))", text)] if text.strip() else []
    return Selector(text, tuple(_requirement(term, text) for term in terms))


def _requirement(term: str, selector: str) -> Requirement:
    if match := _SET.match(term):
        values = frozenset(value.strip() for value in match[3].split(","))
        if values != {""}:
            return Requirement(match[1], match[2] == "notin", values)
    elif match := _EQUALITY.match(term):
        return Requirement(match[1], match[2] == "!=", frozenset({match[3] or ""}))
    elif match := _EXISTS.match(term):
        return Requirement(match[2], match[1] == "!", None)
    raise BadInput(f"label selector {selector!r}: cannot read {term!r}", hint=f"write {_FORMS}")


def matching_nodes(fleet: Sequence[FleetNode], selector: str) -> tuple[str, ...]:
    """Names of the nodes that match, sorted."""
    parsed = parse_selector(selector)
    return tuple(sorted(node.name for node in fleet if parsed.matches(node.labels)))


def pick_nodes(fleet: Sequence[FleetNode], selector: str, count: int, rng: Random) -> tuple[str, ...]:
    """``count`` different nodes that match ``selector``. The order of ``fleet`` does not matter, only the seed does."""
    names = matching_nodes(fleet, selector)
    if count < 1:
        raise BadInput(f"nodes: count is {count}", hint="count must be at least 1")
    if count > len(names):
        raise BadInput(
            f"nodes: {count} wanted, but {len(names)} of {len(fleet)} nodes match {selector!r}"
            + (f" ({', '.join(names)})" if names else ""),
            hint="lower count, widen the selector, or give the target more such nodes",
        )
    return tuple(rng.sample(names, count))
