"""Where a planted bug goes when the component that has it on the embedded cluster is a real one."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fakes.config import PlantedBug
from harness.errors import BadInput, Where

_OURS: Mapping[PlantedBug, str] = {
    PlantedBug.SERVER_ABORTS_ON_SIGTERM: "the model server, which is ours",
    PlantedBug.GATEWAY_ROUTES_TO_TERMINATING: "the gateway, which is ours",
    PlantedBug.DRAIN_IGNORES_PDB: "Karpenter's rules, which are ours",
    PlantedBug.GANG_BOUND_ONE_BY_ONE: "a real scheduler that was started without the gate for gangs",
}
ON_CONTROL_PLANE: Mapping[PlantedBug, str] = {
    **_OURS,
    PlantedBug.READY_BEFORE_SERVING: "the kubelet, which is ours",
    PlantedBug.HPA_BLIND: "a real autoscaler whose role lacks the right to write replica counts",
}
ON_KIND: Mapping[PlantedBug, str] = {
    **_OURS,
    PlantedBug.SERVER_HANGS_ON_SIGTERM: "the model server, which is ours",
    PlantedBug.READY_BEFORE_SERVING: "the model server, whose /health says 200 while it loads",
}
ON_NODE: Mapping[PlantedBug, str] = {**ON_KIND, PlantedBug.HPA_BLIND: ON_CONTROL_PLANE[PlantedBug.HPA_BLIND]}


def refuse_bugs_without_a_place(
    bugs: Collection[PlantedBug], places: Mapping[PlantedBug, str], target: str, where: Where
) -> None:
    """BadInput for a bug that none of our parts and no setting of a real component of ``target`` can have."""
    if homeless := sorted(bug for bug in bugs if bug not in places):
        raise BadInput(
            f"{', '.join(homeless)} cannot be planted on the target {target}: what has this bug on the embedded "
            "cluster is the real thing here",
            where=where,
            hint="run it with --target embedded",
        )
