"""resource.Quantity as Kubernetes writes it back: ``1000m`` is ``1``, ``0.5`` is ``500m``, ``2048Mi`` is ``2Gi``."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from functools import lru_cache

PATTERN = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))((?:[KMGTPE]i)|[numkMGTPE]|(?:[eE][+-]?[0-9]+))?")
TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_BINARY = {f"{letter}i": 1024 ** (i + 1) for i, letter in enumerate("KMGTPE")}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_NANO: Decimal = Decimal("1e-9")
_LARGEST = Decimal(2**63 - 1)


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """Raises ``ValueError`` for what is no quantity."""
    found = PATTERN.fullmatch(text)
    if not found:
        raise ValueError(TEXT)
    number, suffix = found[1], found[2] or ""
    if len(suffix) > 1 and suffix[0] in "eE" and not -100 < int(suffix[1:]) < 100:
        raise ValueError(TEXT)
    try:
        value = Decimal(number)
    except InvalidOperation:  # pragma: no cover - the pattern lets only decimals through
        raise ValueError(TEXT) from None
    if suffix in _BINARY:
        return _binary(value * _BINARY[suffix])
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return _exponent(_bounded(value.scaleb(int(suffix[1:]))))
    return _decimal(_bounded(value.scaleb(_DECIMAL[suffix])))


@lru_cache(maxsize=4096)
def number(text: str) -> Decimal:
    """Of a text that ``canonical`` takes."""
    found = PATTERN.fullmatch(text)
    if not found:
        raise ValueError(TEXT)
    value, suffix = Decimal(found[1]), found[2] or ""
    if suffix in _BINARY:
        return Decimal(value * _BINARY[suffix])
    if len(suffix) > 1:
        return value.scaleb(int(suffix[1:]))
    return value.scaleb(_DECIMAL[suffix])


def _bounded(value: Decimal) -> Decimal:
    """Finer than a nano is rounded away from zero, and beyond int64 is the largest there is."""
    sign = -1 if value < 0 else 1
    size = min(abs(value), _LARGEST)
    nanos = (size / _NANO).to_integral_value(ROUND_CEILING)
    return Decimal(sign * nanos * _NANO)


def _binary(value: Decimal) -> str:
    value = _bounded(value)
    if value != value.to_integral_value():
        return _decimal(value)
    size, power = int(value), 0
    if -1024 < size < 1024:
        return _decimal(value)
    while size and size % 1024 == 0 and power < 6:
        size, power = size // 1024, power + 1
    return f"{size}{'KMGTPE'[power - 1]}i" if power else str(size)


def _decimal(value: Decimal) -> str:
    if value == 0:
        return "0"
    nanos, exponent = int(value / _NANO), -9
    while nanos % 1000 == 0 and exponent < 18:
        nanos, exponent = nanos // 1000, exponent + 3
    return f"{nanos}{_SUFFIX[exponent]}"


def _exponent(value: Decimal) -> str:
    if value == 0:
        return "0"
    nanos, exponent = int(value / _NANO), -9
    while nanos % 1000 == 0:
        nanos, exponent = nanos // 1000, exponent + 3
    return f"{nanos}e{exponent}" if exponent else str(nanos)
