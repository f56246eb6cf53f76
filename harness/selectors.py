"""Kubernetes label selectors, as people write them on a line and as objects carry them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import BadInput

_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_SET = re.compile(rf"^({_WORD})\s+(in|notin)\s*\(([^()]*)\)$")
_EQUALITY = re.compile(rf"^({_WORD})\s*(==|=|!=)\s*({_WORD})?$")
_EXISTS = re.compile(rf"^(!?)\s*({_WORD})$")
_FORMS = "key=value, key!=value, key in (a,b), key notin (a,b), key, !key; joined by commas"


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


NOTHING = Selector("", (Requirement("", False, frozenset()),))
"""Matches no object: no label has a value out of none."""


def selector_of(raw: Mapping[str, Any] | None) -> Selector:
    """From a LabelSelector (``matchLabels``, ``matchExpressions``). An empty one matches everything, none nothing, as a
    policy/v1 budget has it."""
    if raw is None:
        return NOTHING
    labels = raw.get("matchLabels") or {}
    requirements = [Requirement(key, False, frozenset({value})) for key, value in labels.items()]
    for expression in raw.get("matchExpressions") or ():
        operator = expression["operator"]
        values = frozenset(expression.get("values") or ()) if operator in ("In", "NotIn") else None
        requirements.append(Requirement(expression["key"], operator not in ("In", "Exists"), values))
    return Selector("", tuple(requirements))


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
