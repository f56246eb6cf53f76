"""Which targets a run can have, and how each is made. What a target lacks is found out before anything is started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from harness.errors import BadInput, Where
from harness.faults.fidelity import EMBEDDED, KUBECONFIG, VIRTUAL
from harness.faults.pick import FleetNode
from harness.spec.experiment import Experiment
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.description import in_order, not_embedded
from harness.stack.find import find_binaries
from harness.stack.find_addons import find_addons
from harness.targets.base import Target
from harness.targets.bugs import ON_CONTROL_PLANE, ON_KIND, ON_NODE, refuse_bugs_without_a_place
from harness.targets.controlplane.target import ControlPlaneTarget
from harness.targets.embedded import EmbeddedTarget
from harness.targets.kind.commands import KindCommands, find_docker, find_kind
from harness.targets.kind.kept import cluster_name
from harness.targets.kind.target import KindTarget, planned_kind_fleet
from harness.targets.manifests import refused_by_the_embedded_api
from harness.targets.node.target import NodeTarget, refuse_unable_machine
from harness.targets.wanted import Places, Wanted, planned_fleet

_WORLD = "extensions.gpu-harness.world"
EMULATED_GATES = frozenset({"GenericWorkload"})
"""Feature gates of a real control plane whose part the embedded one has, always."""
MakeTarget = Callable[[Wanted, Places], Target]


def _embedded(bin_dir: Path | None) -> MakeTarget:
    if bin_dir is not None:
        raise BadInput(
            "the embedded target runs no program of others", where=Where("--bin-dir"), hint="--target controlplane"
        )
    return EmbeddedTarget


def _controlplane(bin_dir: Path | None) -> MakeTarget:
    binaries = find_binaries(CONTROL_PLANE, bin_dir)

    def make(wanted: Wanted, places: Places) -> ControlPlaneTarget:
        addons = in_order(wanted.stack)
        return ControlPlaneTarget(wanted, binaries, places, addons, find_addons(addons, bin_dir))

    return make


def _kind(bin_dir: Path | None) -> MakeTarget:
    commands = KindCommands(find_docker(), find_kind(bin_dir), cluster_name(), Path())
    return lambda wanted, places: KindTarget(wanted, commands, places)


HAVE_A_REAL_API_SERVER = (ControlPlaneTarget.name, "node", "kind", "kubeconfig")


def _node(bin_dir: Path | None) -> MakeTarget:
    refuse_unable_machine()
    binaries = find_binaries(NodeTarget.programs, bin_dir)

    def make(wanted: Wanted, places: Places) -> NodeTarget:
        addons = in_order(wanted.stack)
        return NodeTarget(wanted, binaries, places, addons, find_addons(addons, bin_dir))

    return make


TARGETS: dict[str, Callable[[Path | None], MakeTarget]] = {
    "embedded": _embedded,
    "controlplane": _controlplane,
    "node": _node,
    "kind": _kind,
}
"""By name: from the folder of real programs, if one was named, to what makes the target."""


_PLACES_OF_BUGS = {
    ControlPlaneTarget.name: ON_CONTROL_PLANE,
    NodeTarget.name: ON_NODE,
    KindTarget.name: ON_KIND,
}


def check_world(target: str, wanted: Wanted, experiment: Experiment) -> None:
    """BadInput for what the experiment asks of its world and this target cannot give."""
    if (places := _PLACES_OF_BUGS.get(target)) is not None:
        where = Where(str(experiment.path), key=f"{_WORLD}.planted_bugs")
        refuse_bugs_without_a_place(wanted.config.planted_bugs, places, target, where)
        if wanted.config.processes and target == KindTarget.name:
            raise BadInput(
                "the target kind has nodes in containers, which do not see the programs of this machine",
                where=Where(str(experiment.path), key=f"{_WORLD}.processes"),
                hint="--target node runs them in containers, --target embedded as processes",
            )
    elif target in (EMBEDDED, VIRTUAL) and (why := why_not_embedded(wanted, experiment)) is not None:
        raise why


def why_not_embedded(wanted: Wanted, experiment: Experiment) -> BadInput | None:
    """What of the experiment only a real control plane has; None where the embedded one will do."""
    path, hint = str(experiment.path), "run it with --target controlplane"
    if gates := sorted({gate for own in wanted.config.feature_gates.values() for gate in own} - EMULATED_GATES):
        what = f"{', '.join(gates)}: only a real control plane has these feature gates"
        return BadInput(what, where=Where(path, key=f"{_WORLD}.feature_gates"), hint=hint)
    if pool := next((pool for pool in wanted.config.pools if pool.dra), None):
        what = f"pool {pool.name!r} offers its GPUs by claim (dra), and the embedded API does not serve that"
        return BadInput(what, where=Where(path, key=f"{_WORLD}.pools"), hint=hint)
    files = (*experiment.manifest_files, *experiment.action_manifests.values())
    return refused_by_the_embedded_api(files, {pool.node_pool for pool in wanted.config.pools})


def fleet_of(target: str, wanted: Wanted) -> Sequence[FleetNode]:
    """The nodes that the target will have at the start, as its plan names them."""
    return planned_kind_fleet(wanted.config) if target == KindTarget.name else planned_fleet(wanted.config)


def check_stack(target: str, experiment: Experiment) -> None:
    """BadInput where real components are asked for that there is no API server for, and nothing that plays them."""
    settings = experiment.settings
    if target not in HAVE_A_REAL_API_SERVER and (alone := not_embedded(settings.stack)):
        raise experiment.document.mistake(
            (*settings.at, "stack"),
            f"{', '.join(alone)} cannot run on the target {target}, whose API server is emulated",
            "run it with --target controlplane",
        )


def check_target(name: str) -> None:
    if name not in (*TARGETS, KUBECONFIG):
        hint = f"there is: {', '.join((*TARGETS, KUBECONFIG))}"
        raise BadInput(f"there is no target {name!r}", where=Where("--target"), hint=hint)
