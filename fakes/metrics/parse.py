"""Prometheus' text format, read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+(?P<time>-?\d+))?\s*$"
)
_LABEL = re.compile(r'\s*(?P<key>[a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"(?P<value>(?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPE = re.compile(r"\\(.)")


class BadExposition(ValueError):
    """A line that is not Prometheus' text format."""


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    labels: dict[str, str]
    value: float


def parse(text: str, *, buckets: bool = True) -> Iterator[Sample]:
    """``buckets=False`` leaves histogram buckets out, which are most of a model server's lines."""
    for line in text.splitlines():
        if not line or line[0] == "#" or (not buckets and "_bucket{" in line):
            continue
        found = _LINE.match(line)
        if found is None:
            raise BadExposition(f"not a sample: {line[:120]!r}")
        yield Sample(found["name"], _labels(found["labels"] or "", line), _value(found["value"], line))


def _labels(text: str, line: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    at = 0
    while at < len(text):
        found = _LABEL.match(text, at)
        if found is None:
            raise BadExposition(f"bad labels: {line[:120]!r}")
        value = found["value"]
        labels[found["key"]] = _ESCAPE.sub(_unescape, value) if "\\" in value else value
        at = found.end()
    return labels


def _unescape(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]


def _value(text: str, line: str) -> float:
    try:
        return float(text)  # takes NaN, +Inf and -Inf, too
    except ValueError as error:
        raise BadExposition(f"bad value: {line[:120]!r}") from error
