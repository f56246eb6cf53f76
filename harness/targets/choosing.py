"""Which targets a run can have, and how each is made. What a target lacks is found out before a run has a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BadInput, Where
from harness.spec.experiment import Experiment
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.find import find_binaries
from harness.targets.base import Target
from harness.targets.controlplane.target import ControlPlaneTarget
from harness.targets.embedded import EmbeddedTarget, world_config
from harness.targets.manifests import read_manifests


@dataclass(frozen=True, slots=True)
class Places:
    """Where a target of a run may write: its own files, its logs, and the book of the fake model servers."""

    folder: Path
    logs: Path
    ledger: Path


MakeTarget = Callable[[Experiment, int, Places], Target]
"""From an experiment and a seed."""


def _embedded(bin_dir: Path | None) -> MakeTarget:
    if bin_dir is not None:
        raise BadInput("the embedded target has no programs of its own", where=Where("--bin-dir"))
    return lambda experiment, seed, places: EmbeddedTarget(
        experiment, seed, places.folder, places.logs / "world.log", places.ledger
    )


def _controlplane(bin_dir: Path | None) -> MakeTarget:
    binaries = find_binaries(CONTROL_PLANE, bin_dir)
    return lambda experiment, seed, places: ControlPlaneTarget(
        world_config(experiment, seed),
        binaries,
        places.folder,
        places.logs,
        objects=read_manifests(experiment.manifest_files),
        selector=experiment.settings.workload.selector,
        ledger=places.ledger,
    )


TARGETS: dict[str, Callable[[Path | None], MakeTarget]] = {"embedded": _embedded, "controlplane": _controlplane}


def check_target(name: str) -> None:
    if name not in TARGETS:
        raise BadInput(f"there is no target {name!r}", where=Where("--target"), hint=f"there is: {', '.join(TARGETS)}")
