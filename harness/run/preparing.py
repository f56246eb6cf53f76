"""Everything that can be wrong with a run, found before anything is started."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import BadInput, Where
from harness.faults.fidelity import CONTROL_PLANE, EMBEDDED, KUBECONFIG, VIRTUAL
from harness.faults.guards import check_arguments, check_caps, check_guards
from harness.faults.scene import Scene
from harness.plan.plan import Plan, plan_experiment, plan_profile
from harness.plan.trace import TraceCut
from harness.spec.document import read_document
from harness.spec.experiment import Experiment, load_experiment
from harness.spec.loadprofile import LoadProfile, load_profile
from harness.stack.description import kinds
from harness.targets.choosing import check_stack, check_target, check_world, fleet_of, why_not_embedded
from harness.targets.foreign import Foreign, Survey, survey
from harness.targets.manifests import read_manifests
from harness.targets.wanted import wanted_by

TIME_SCALE_MAX = 1000.0


@dataclass(frozen=True, slots=True)
class Prepared:
    experiment: Experiment
    profile: LoadProfile
    plan: Plan
    target: str
    survey: Survey | None = None
    """Of a cluster that others made."""


def is_profile(path: Path) -> bool:
    """Whether the file is a load profile, and not an experiment."""
    data = read_document(path).data
    return isinstance(data, dict) and "arrivals" in data and "method" not in data


def plan_file(path: Path, *, seed: int, cut: TraceCut | None, time_scale: float | None) -> Plan:
    """The plan of an experiment, or of a load profile alone, whichever the file is."""
    if is_profile(path):
        return plan_profile(load_profile(path), seed, 1.0 if time_scale is None else time_scale, cut)
    if time_scale is not None:
        raise BadInput(
            "--time-scale is for a load profile alone",
            where=Where(str(path)),
            hint="an experiment has its own, in the block gpu-harness",
        )
    return prepare(path, seed=seed, target=fitting_target(path), cut=cut).plan


def fitting_target(path: Path) -> str:
    """The cheapest target that can run the experiment: a real control plane where it wants what only that has."""
    experiment = load_experiment(path)
    if experiment.settings.stack or why_not_embedded(wanted_by(experiment, 1), experiment) is not None:
        return CONTROL_PLANE
    return EMBEDDED


def validated(path: Path) -> str:
    """What to say of an experiment, or a load profile, that is valid. BadInput for any mistake. An experiment without
    a world is for a cluster of others, and only what needs no look at that is checked."""
    if is_profile(path):
        rows = plan_file(path, seed=1, cut=None, time_scale=None).schedule.rows
        return f"valid (a load profile of {rows} requests with seed 1 at time_scale 1)"
    experiment = load_experiment(path)
    if experiment.settings.world is None:
        load_profile(experiment.load_file)
        read_manifests(experiment.action_manifests.values(), kinds(experiment.settings.stack))
        check_guards(experiment.actions, KUBECONFIG)
        return f"valid for a cluster of others ({len(experiment.actions)} actions; it has no world of its own)"
    prepared = prepare(path, seed=1, target=fitting_target(path), cut=None)
    return f"valid ({prepared.plan.schedule.rows} requests, {len(experiment.actions)} actions)"


def prepare(
    path: Path,
    *,
    seed: int,
    target: str,
    cut: TraceCut | None,
    virtual: bool = False,
    time_scale: float | None = None,
    foreign: Foreign | None = None,
) -> Prepared:
    """Reads and checks the experiment with all files it names, and plans it. BadInput for any mistake.

    ``time_scale`` instead of the experiment's own is for virtual time, where waiting costs nothing, and for a cluster
    of others (``foreign``), which knows real time only. That one is read to plan on it.
    """
    check_target(target)
    if (target == KUBECONFIG) is not (foreign is not None):
        raise BadInput(
            f"--target {target} names no cluster by itself",
            hint="gpu-harness run EXPERIMENT --target kubeconfig --kubeconfig FILE --context NAME --url URL",
        )
    experiment = load_experiment(path)
    profile = load_profile(experiment.load_file)
    if time_scale is not None:
        experiment, profile = _rescaled(experiment, profile, time_scale)
    if virtual:
        if target != EMBEDDED:
            raise BadInput(f"--virtual has no target {target}", hint="only the embedded world knows virtual time")
        target = VIRTUAL
    check_stack(target, experiment)
    check_guards(experiment.actions, target)
    check_arguments(experiment.actions, target)
    read_manifests(experiment.action_manifests.values(), kinds(experiment.settings.stack))
    found = survey(experiment, foreign) if foreign is not None else None
    scene = Scene(nodes=found.fleet, pools=found.pools) if found else _scene_of_the_world(experiment, target, seed)
    plan = plan_experiment(experiment, profile, seed, scene, cut)
    check_caps(plan.faults, experiment.settings.guards, len(scene.nodes))
    return Prepared(experiment, profile, plan, target, found)


def _scene_of_the_world(experiment: Experiment, target: str, seed: int) -> Scene:
    """Of a cluster that we will start: what its world will have."""
    wanted = wanted_by(experiment, seed)
    check_world(target, wanted, experiment)
    return Scene(nodes=fleet_of(target, wanted), pools=tuple(pool.name for pool in wanted.config.pools))


def _rescaled(experiment: Experiment, profile: LoadProfile, time_scale: float) -> tuple[Experiment, LoadProfile]:
    """Tokens are never scaled, so the longest stream keeps its clock seconds and is fewer or more scenario seconds."""
    if not 0 < time_scale <= TIME_SCALE_MAX:
        raise BadInput(f"--time-scale is {time_scale:g}, but must be above 0 and at most {TIME_SCALE_MAX:g}")
    longest_stream_s = profile.longest_stream_s * time_scale / experiment.settings.time_scale
    spec = profile.spec.model_copy(update={"longest_stream_s": longest_stream_s})
    settings = replace(experiment.settings, time_scale=time_scale)
    return replace(experiment, settings=settings), replace(profile, spec=spec)
