"""What pods ask for and what nodes have, in whole units of the scheduler: CPU in thousandths, all else as written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

from fakes.controllers.quantity import parse_quantity
from harness.kube.port import Json

CPU, MEMORY, PODS = "cpu", "memory", "pods"

Amounts = Mapping[str, int]


def amounts(quantities: Mapping[str, str | int] | None) -> dict[str, int]:
    return {name: _amount(name, value) for name, value in (quantities or {}).items()}


@lru_cache(maxsize=1024)  # the same few quantities are read over and over
def _amount(name: str, value: str | int) -> int:
    return math.ceil(parse_quantity(value) * (1000 if name == CPU else 1))


def requested(pod: Json) -> dict[str, int]:
    """All containers together or the largest init container, whichever is more; sidecars count beside both."""
    spec = pod["spec"]
    containers = spec.get("containers") or []
    if len(containers) == 1 and not spec.get("initContainers") and not spec.get("overhead"):
        return _container(containers[0])
    total = _sum(map(_container, containers))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or []:
        asked = _container(container)
        if container.get("restartPolicy") == "Always":
            sidecars = _sum((sidecars, asked))
            peak = _max(peak, sidecars)
        else:
            peak = _max(peak, _sum((sidecars, asked)))
    total = _max(_sum((total, sidecars)), peak)
    return _sum((total, amounts(spec.get("overhead"))))


def _container(container: Json) -> dict[str, int]:
    """A limit without a request is one, as the API server defaults it."""
    resources = container.get("resources") or {}
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _sum(parts: Iterable[Amounts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total


def _max(one: Amounts, other: Amounts) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in (*one, *other)}
