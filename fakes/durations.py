"""Durations as Go writes them, in whatever Kubernetes keeps one: 1m15s."""

from __future__ import annotations

import re

_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"([0-9.]+)(h|ms|us|µs|ns|m|s)")


def seconds_of(text: str) -> float:
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))
