"""No node was ever decided for the pod that found no room."""

from __future__ import annotations

from cases import Case
from no_room import one_replica, second_never_served


def case() -> Case:
    return second_never_served(one_replica())
