"""Numbers as metric endpoints write them: Prometheus' text format and Kubernetes' quantities."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)\s*(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*$")
_LABEL = re.compile(r'\s*(?P<key>[a-zA-Z_]\w*)\s*=\s*"(?P<value>(?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
_QUANTITY = re.compile(r"^([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(?:([eE][+-]?\d+)|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?)$")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@dataclass(frozen=True, slots=True)
class MetricSample:
    name: str
    labels: dict[str, str]
    value: float


def parse_metrics(text: str) -> Iterator[MetricSample]:
    """Raises ``ValueError`` on a line that is none of the format. Buckets of histograms are left out: too many rows for
    what they tell at this rate; their sums and counts stay."""
    for line in text.split("\n"):  # what else Unicode takes for the end of a line may stand in a label
        if not line or line.startswith("#"):
            continue
        found = _SAMPLE.match(line)
        if found is None:
            raise ValueError(f"not a metric sample: {line[:120]!r}")
        if not found["name"].endswith("_bucket"):
            yield MetricSample(found["name"], _labels(found["labels"] or ""), float(found["value"]))


def parse_quantity(text: str) -> float:
    """``2500m`` is 2.5. Raises ``ValueError`` on anything else than a quantity."""
    found = _QUANTITY.match(text)
    if found is None:
        raise ValueError(f"not a quantity: {text!r}")
    number, exponent, suffix = found.groups()
    if exponent:
        return float(number + exponent)
    if suffix in _BINARY:
        return float(number) * float(1 << _BINARY[suffix])
    # Through the exponent, not by a factor: 3m is then exactly what 0.003 is.
    return float(f"{number}e{_DECIMAL.get(suffix or '', 0)}")


def _labels(text: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    at = 0
    while at < len(text):
        found = _LABEL.match(text, at)
        if found is None:
            raise ValueError(f"not labels: {text[:120]!r}")
        labels[found["key"]] = re.sub(r"\\.", lambda m: _ESCAPES.get(m[0], m[0]), found["value"])
        at = found.end()
    return labels
