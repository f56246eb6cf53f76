"""Decisions of a Deployment: how many pods each of its ReplicaSets should have next. Pure."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fakes.controllers.names import stable_hash
from fakes.controllers.objects import name_of
from fakes.controllers.quantity import scaled_value
from harness.kube.port import Json

HASH_LABEL = "pod-template-hash"


@dataclass(frozen=True, slots=True)
class SetState:
    """A ReplicaSet as the rollout sees it."""

    name: str
    wanted: int
    replicas: int
    available: int
    age_rank: tuple[str, str] = ("", "")  # older sorts first

    @classmethod
    def of(cls, owned: Json) -> SetState:
        status = owned.get("status") or {}
        meta = owned["metadata"]
        return cls(
            name_of(owned),
            wanted_replicas(owned),
            int(status.get("replicas") or 0),
            int(status.get("availableReplicas") or 0),
            (str(meta.get("creationTimestamp", "")), name_of(owned)),
        )


@dataclass(frozen=True, slots=True)
class Room:
    """How far a rolling update may go above and below the wanted number."""

    surge: int
    unavailable: int


def wanted_replicas(obj: Json) -> int:
    value = obj["spec"].get("replicas")
    return 1 if value is None else int(value)


_hashed: OrderedDict[int, tuple[Json, str]] = OrderedDict()
_HASHED_MAX = 1024


def template_hash(deployment: Json) -> str:
    """Looked up for a template that is the very object of an earlier call: a Deployment is looked at for each of its
    pods, and versions of it share their template."""
    template = deployment["spec"]["template"]
    found = _hashed.get(id(template))
    if found is None or found[0] is not template:
        found = _hashed[id(template)] = (template, stable_hash(template))
        if len(_hashed) > _HASHED_MAX:
            _hashed.popitem(last=False)
    return found[1]


def is_rolling(deployment: Json) -> bool:
    return bool((deployment["spec"].get("strategy") or {}).get("type", "RollingUpdate") == "RollingUpdate")


def room_of(deployment: Json) -> Room:
    """Surge rounds up, unavailable rounds down; both zero would never move, so one may be missing then."""
    if not is_rolling(deployment):
        return Room(0, 0)
    rolling: dict[str, Any] = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    wanted = wanted_replicas(deployment)
    surge = scaled_value(rolling.get("maxSurge", "25%"), wanted, round_up=True)
    unavailable = min(scaled_value(rolling.get("maxUnavailable", "25%"), wanted, round_up=False), wanted)
    return Room(surge, 1 if surge == 0 and unavailable == 0 else unavailable)


def new_set_size(wanted: int, new: SetState, old: Sequence[SetState], room: Room) -> int:
    """Next size of the ReplicaSet of the current template in a rolling update."""
    if new.wanted >= wanted:
        return wanted
    total = new.wanted + sum(s.wanted for s in old)
    free = wanted + room.surge - total
    return new.wanted + max(0, min(free, wanted - new.wanted))


def old_set_sizes(wanted: int, new: SetState, old: Sequence[SetState], room: Room) -> dict[str, int]:
    """Next sizes of the ReplicaSets of former templates: first their unhealthy pods go, then healthy ones as far as
    enough stay available."""
    sizes = {s.name: s.wanted for s in old}
    if not sum(sizes.values()):
        return sizes
    least_available = wanted - room.unavailable
    may_go = sum(sizes.values()) + new.wanted - least_available - max(0, new.wanted - new.available)
    if may_go <= 0:
        return sizes
    oldest_first = sorted(old, key=lambda s: s.age_rank)
    for state in oldest_first:
        unhealthy = min(may_go, max(0, state.wanted - state.available))
        sizes[state.name] -= unhealthy
        may_go -= unhealthy
    healthy_may_go = new.available + sum(s.available for s in old) - least_available
    for state in oldest_first:
        going = max(0, min(healthy_may_go, sizes[state.name]))
        sizes[state.name] -= going
        healthy_may_go -= going
    return sizes


def proportional_sizes(states: Sequence[SetState], limit: int, former_limit: int) -> dict[str, int]:
    """A Deployment scaled in the middle of a rollout: the difference is shared out by size, the largest first."""
    change = limit - sum(s.wanted for s in states)
    sizes = {s.name: s.wanted for s in states}
    if change == 0 or not states:
        return sizes
    left = change
    by_age = sorted(states, key=lambda s: s.age_rank, reverse=change > 0)
    by_size = sorted(by_age, key=lambda s: -s.wanted)  # of equal ones the newest grows first, the oldest shrinks first
    for state in by_size:
        share = _share(state.wanted, limit, former_limit) if limit else -state.wanted
        share = max(0, min(share, left)) if change > 0 else min(0, max(share, left))
        sizes[state.name] = max(0, state.wanted + share)
        left -= share
    first = by_size[0].name
    sizes[first] = max(0, sizes[first] + left)  # what rounding left over
    return sizes


def _share(wanted: int, limit: int, former_limit: int) -> int:
    if former_limit <= 0:
        return 0
    exact = wanted * limit / former_limit - wanted
    return math.floor(abs(exact) + 0.5) * (1 if exact >= 0 else -1)


def status_counts(deployment: Json, new: Json | None, owned: Sequence[Json]) -> Json:
    statuses = [s.get("status") or {} for s in owned]
    available = sum(int(s.get("availableReplicas") or 0) for s in statuses)
    total = sum(int(s.get("replicas") or 0) for s in statuses)
    return {
        "observedGeneration": int(deployment["metadata"].get("generation") or 0),
        "replicas": total,
        "updatedReplicas": int(((new or {}).get("status") or {}).get("replicas") or 0),
        "readyReplicas": sum(int(s.get("readyReplicas") or 0) for s in statuses),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(wanted_replicas(s) for s in owned) - available),
        "terminatingReplicas": sum(int(s.get("terminatingReplicas") or 0) for s in statuses),
    }


def is_complete(deployment: Json, counts: Json) -> bool:
    wanted = wanted_replicas(deployment)
    fields = ("updatedReplicas", "replicas", "availableReplicas")
    return all(int(counts.get(field) or 0) == wanted for field in fields)
