"""Why Karpenter's NodePools have no room for another node, as they say it themselves."""

from __future__ import annotations

from harness.diagnosis.case import Case
from harness.history.lives import GPU, Json, condition


def closed(case: Case) -> list[str]:
    """In words, of each NodePool that was not ready, or had no GPU left within its limits, when it was last seen."""
    return [f"NodePool {pool.name} {why}" for pool in case.of("NodePool") if (why := _why(pool.last))]


def _why(pool: Json) -> str:
    for kind in ("NodeClassReady", "ValidationSucceeded"):
        said = condition(pool, kind)
        if said.get("status") == "False":
            return f"is not ready: {said.get('reason') or kind}"
    limit = _whole((pool.get("spec", {}).get("limits") or {}).get(GPU))
    used = _whole((pool.get("status", {}).get("resources") or {}).get(GPU))
    if limit is not None and used is not None and used >= limit:
        return f"has the {used} GPUs that its limits allow"
    return ""


def _whole(amount: object) -> int | None:
    """Extended resources are whole numbers; with a suffix they are so large that no limit of theirs is met."""
    return int(str(amount)) if str(amount).isdecimal() else None
