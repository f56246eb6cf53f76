"""Numbers that fields hold: not below zero, percentages, quantities of resources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from fakes.kube.names import label_key_problems
from fakes.kube.schema import quantity
from fakes.kube.status import Cause, bad_value, required
from harness.kube.port import Json

PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
NOT_NEGATIVE = "must be greater than or equal to 0"
_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage", "storage"})


def not_negative(obj: Json, field: str, path: str) -> Iterator[Cause]:
    if obj.get(field, 0) < 0:
        yield bad_value(f"{path}.{field}", obj[field], NOT_NEGATIVE)


def count_or_percent(obj: Json, field: str, path: str, *, at_most_all: bool) -> Iterator[Cause]:
    value = obj.get(field)
    if isinstance(value, str):
        if not re.fullmatch(r"[0-9]+%", value):
            yield bad_value(f"{path}.{field}", value, PERCENT_TEXT)
        elif at_most_all and int(value[:-1]) > 100:
            yield bad_value(f"{path}.{field}", value, "must not be greater than 100%")
    elif isinstance(value, int) and value < 0:
        yield bad_value(f"{path}.{field}", value, NOT_NEGATIVE)


def number_of(value: Any) -> int | None:
    """Of a count or a percentage; None for what is neither."""
    if isinstance(value, int):
        return value
    return int(value[:-1]) if isinstance(value, str) and re.fullmatch(r"[0-9]+%", value) else None


def port_of(value: int, path: str) -> Iterator[Cause]:
    if not 1 <= value <= 65535:
        yield bad_value(path, value, "must be between 1 and 65535, inclusive")


def resources_of(resources: Json, path: str) -> Iterator[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in sorted(amounts.items()):
            yield from _amount(name, amount, f"{path}.{kind}[{name}]")
            if kind == "requests":
                yield from _within(name, amount, limits, path)


def _amount(name: str, amount: str, path: str) -> Iterator[Cause]:
    for problem in label_key_problems(name):
        yield bad_value(path, name, problem)
    if "/" not in name and not _is_standard(name):
        yield bad_value(path, name, "must be a standard resource type or fully qualified")
        yield bad_value(path, name, "must be a standard resource for containers")
    value = quantity.number(amount)
    if value < 0:
        yield bad_value(path, amount, NOT_NEGATIVE)
    if is_extended(name) and value != value.to_integral_value():
        yield bad_value(path, amount, "must be an integer")


def _within(name: str, amount: str, limits: Json, path: str) -> Iterator[Cause]:
    if name not in limits:
        if is_extended(name):
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    asked, limit = quantity.number(amount), quantity.number(limits[name])
    if is_extended(name) and asked != limit:
        yield bad_value(f"{path}.requests", amount, f"must be equal to {name} limit of {limits[name]}")
    elif asked > limit and limit >= Decimal(0):
        yield bad_value(f"{path}.requests", amount, f"must be less than or equal to {name} limit of {limits[name]}")


def _is_standard(name: str) -> bool:
    return name in _STANDARD or name.startswith("hugepages-")


def is_extended(name: str) -> bool:
    return "/" in name and not name.partition("/")[0].endswith("kubernetes.io")
