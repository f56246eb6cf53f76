"""Everything that can be wrong with a run, found before anything is started."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import BadInput, Where
from harness.faults.fidelity import CONTROL_PLANE, EMBEDDED, KUBECONFIG, VIRTUAL
from harness.faults.guards import check_arguments, check_caps, check_guards
from harness.faults.scene import Scene
from harness.plan.plan import TIME_SCALE_MAX, TIME_SCALE_MIN, Plan, plan_experiment, plan_profile
from harness.plan.trace import TraceCut
from harness.spec.document import read_document
from harness.spec.experiment import Experiment, load_experiment
from harness.spec.filekind import is_profile
from harness.spec.loadprofile import LoadProfile, load_profile
from harness.stack.description import kinds
from harness.targets.choosing import check_stack, check_target, check_world, fleet_of, why_not_embedded
from harness.targets.foreign import Foreign, Survey, survey
from harness.targets.manifests import read_manifests
from harness.targets.wanted import wanted_by


@dataclass(frozen=True, slots=True)
class Prepared:
    experiment: Experiment
    profile: LoadProfile
    plan: Plan
    target: str
    survey: Survey | None = None
    """Of a cluster that others made."""


def plan_file(path: Path, *, seed: int, cut: TraceCut | None, time_scale: float | None) -> Plan:
    """The plan of an experiment, or of a load profile alone, whichever the file is."""
    if is_profile(read_document(path)):
        return _plan_alone(load_profile(path), seed, cut, time_scale)
    if time_scale is not None:
        raise BadInput(
            "--time-scale is for a load profile alone",
            where=Where(str(path)),
            hint="an experiment has its own, in the block gpu-harness",
        )
    return prepare(path, seed=seed, target=fitting_target(path), cut=cut).plan


def _plan_alone(profile: LoadProfile, seed: int, cut: TraceCut | None, time_scale: float | None) -> Plan:
    """A profile does not know for which time_scale it is meant, so only one that was given can be wrong for it."""
    if time_scale is None:
        plan = plan_profile(profile, seed, 1.0, cut)
        return plan.with_notes(*_needed_time_scale(profile))
    plan = plan_profile(profile, seed, time_scale, cut)
    profile.check_patience(time_scale)
    return plan


def _needed_time_scale(profile: LoadProfile) -> tuple[str, ...]:
    if profile.time_scale_min <= 1:
        return ()
    return (
        f"an experiment needs a time_scale of at least {profile.time_scale_min:.3g}: longest_stream_s "
        f"({profile.longest_stream_s:g} scenario s) by send.deadline_s ({profile.send.deadline_s:g} clock s)",
    )


def fitting_target(path: Path) -> str:
    """The cheapest target that can run the experiment: a real control plane where it wants what only that has."""
    experiment = load_experiment(path)
    if experiment.settings.stack or why_not_embedded(wanted_by(experiment, 1), experiment) is not None:
        return CONTROL_PLANE
    return EMBEDDED


def validated(path: Path) -> str:
    """What to say of an experiment, or a load profile, that is valid. BadInput for any mistake. An experiment without
    a world is for a cluster of others, and only what needs no look at that is checked."""
    if is_profile(read_document(path)):
        plan = plan_file(path, seed=1, cut=None, time_scale=None)
        notes = "".join(f"; {note}" for note in plan.notes)
        return f"valid (a load profile of {plan.schedule.rows} requests with seed 1 at time_scale 1{notes})"
    experiment = load_experiment(path)
    if experiment.settings.world is None:
        load_profile(experiment.load_file).check_patience(experiment.settings.time_scale)
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
    if not TIME_SCALE_MIN <= time_scale <= TIME_SCALE_MAX:
        raise BadInput(f"--time-scale is {time_scale:g}, but must be from {TIME_SCALE_MIN:g} to {TIME_SCALE_MAX:g}")
    longest_stream_s = profile.longest_stream_s * time_scale / experiment.settings.time_scale
    spec = profile.spec.model_copy(update={"longest_stream_s": longest_stream_s})
    settings = replace(experiment.settings, time_scale=time_scale)
    return replace(experiment, settings=settings), replace(profile, spec=spec)
