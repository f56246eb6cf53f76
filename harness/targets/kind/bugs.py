"""Which planted bugs have a place on a kind cluster, and which of them the real thing cannot have."""

from __future__ import annotations

from collections.abc import Collection

from fakes.config import PlantedBug
from harness.errors import BadInput, Where

PLACES: dict[PlantedBug, str] = {
    PlantedBug.SERVER_ABORTS_ON_SIGTERM: "the model server, which is ours",
    PlantedBug.SERVER_HANGS_ON_SIGTERM: "the model server, which is ours",
    PlantedBug.READY_BEFORE_SERVING: "the model server, whose /health says 200 while it loads",
    PlantedBug.GATEWAY_ROUTES_TO_TERMINATING: "the gateway, which is ours",
    PlantedBug.DRAIN_IGNORES_PDB: "Karpenter's rules, which are ours",
    PlantedBug.GANG_BOUND_ONE_BY_ONE: "a real scheduler that was started without the gate for gangs",
}


def refuse_bugs_without_a_place_on_kind(bugs: Collection[PlantedBug], where: Where) -> None:
    """BadInput for a bug that none of our parts and no setting of a real component can have."""
    if homeless := sorted(bug for bug in bugs if bug not in PLACES):
        raise BadInput(
            f"{', '.join(homeless)} cannot be planted on the target kind: what has this bug on the embedded cluster is "
            "the real thing here",
            where=where,
            hint="run it with --target embedded",
        )
