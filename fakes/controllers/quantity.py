"""Kubernetes quantities ("500m", "4Gi", "1e3") and int-or-percent values, in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

_SUFFIXES: dict[str, Fraction] = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15),
    "E": Fraction(10**18), "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
    "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip


def parse_quantity(value: str | int | float) -> Fraction:
    """Raises ValueError for what is no quantity."""
    text = str(value).strip()
    try:
        return Fraction(text)  # also reads "1e3" and "1.5"
    except ValueError:
        number = text.rstrip("numkKMGTPEi")
        return Fraction(number) * _suffix(text, text[len(number) :])


def _suffix(text: str, suffix: str) -> Fraction:
    if suffix not in _SUFFIXES:
        raise ValueError(f"{text!r} is no quantity: unknown suffix {suffix!r}, known: {', '.join(_SUFFIXES)}")
    return _SUFFIXES[suffix]


@lru_cache(maxsize=4096, typed=True)  # an autoscaler reads the same few values of all its pods
def milli(value: str | int | float) -> int:
    """In thousandths, rounded up, as the autoscaler computes."""
    return math.ceil(parse_quantity(value) * 1000)


def format_milli(value: int) -> str:
    """The canonical text of a quantity given in thousandths."""
    return str(value // 1000) if value % 1000 == 0 else f"{value}m"


def scaled_value(value: int | str, total: int, *, round_up: bool) -> int:
    """An int-or-percent: ``"25%"`` of ``total``, or the number itself."""
    if isinstance(value, str) and value.endswith("%"):
        share = Fraction(int(value[:-1]) * total, 100)
        return math.ceil(share) if round_up else math.floor(share)
    return int(value)
