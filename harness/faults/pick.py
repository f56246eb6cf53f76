"""Which nodes a fault hits: pure and seeded, so a plan can be printed and compared before anything is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from harness.errors import BadInput
from harness.selectors import parse_selector

NODE_POOL_LABEL = "karpenter.sh/nodepool"


@dataclass(frozen=True, slots=True)
class FleetNode:
    """What a pick needs to know of a node."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 0


def matching_nodes(fleet: Sequence[FleetNode], selector: str) -> tuple[str, ...]:
    """Names of the nodes that match, sorted."""
    parsed = parse_selector(selector)
    return tuple(sorted(node.name for node in fleet if parsed.matches(node.labels)))


def pick_nodes(fleet: Sequence[FleetNode], selector: str, count: int, rng: Random) -> tuple[str, ...]:
    """``count`` different nodes that match ``selector``. The order of ``fleet`` does not matter, only the seed does."""
    names = matching_nodes(fleet, selector)
    if count < 1:
        raise BadInput(f"nodes: count is {count}", hint="count must be at least 1")
    if count > len(names):
        raise BadInput(
            f"nodes: {count} wanted, but {len(names)} of {len(fleet)} nodes match {selector!r}"
            + (f" ({', '.join(names)})" if names else ""),
            hint="lower count, widen the selector, or give the target more such nodes",
        )
    return tuple(rng.sample(names, count))
