"""Which targets a run can have, and how each is made. What a target lacks is found out before anything is started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.errors import BadInput, Where
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.find import find_binaries
from harness.targets.base import Target
from harness.targets.controlplane.bugs import refuse_bugs_without_a_place
from harness.targets.controlplane.target import ControlPlaneTarget
from harness.targets.embedded import EmbeddedTarget
from harness.targets.wanted import Places, Wanted

MakeTarget = Callable[[Wanted, Places], Target]


def _embedded(bin_dir: Path | None) -> MakeTarget:
    if bin_dir is not None:
        raise BadInput(
            "the embedded target runs no program of others", where=Where("--bin-dir"), hint="--target controlplane"
        )
    return EmbeddedTarget


def _controlplane(bin_dir: Path | None) -> MakeTarget:
    binaries = find_binaries(CONTROL_PLANE, bin_dir)
    return lambda wanted, places: ControlPlaneTarget(wanted, binaries, places)


TARGETS: dict[str, Callable[[Path | None], MakeTarget]] = {"embedded": _embedded, "controlplane": _controlplane}
"""By name: from the folder of real programs, if one was named, to what makes the target."""


def check_world(target: str, wanted: Wanted, experiment: Path) -> None:
    """BadInput for what the experiment asks of its world and this target cannot give."""
    if target == ControlPlaneTarget.name:
        where = Where(str(experiment), key="extensions.gpu-harness.world.planted_bugs")
        refuse_bugs_without_a_place(wanted.config.planted_bugs, where)


def check_target(name: str) -> None:
    if name not in TARGETS:
        raise BadInput(f"there is no target {name!r}", where=Where("--target"), hint=f"there is: {', '.join(TARGETS)}")
