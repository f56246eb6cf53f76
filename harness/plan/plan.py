"""The plan: all that a seed fixes before anything is touched. Same experiment, profile, fleet and seed: same bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.clock import NS_PER_S
from harness.errors import BadInput
from harness.faults.pick import FleetNode, pick_nodes
from harness.plan.arrivals import arrival_times_ns, load_steps_ns
from harness.plan.chance import Chance, target_random
from harness.plan.schedule import SCHEDULE_FILE, Schedule, Stats, rises_ns
from harness.plan.tokens import draw_tokens
from harness.plan.trace import TraceCut, cut_rows
from harness.spec.actions import ApplyObjects, SpotInterruption
from harness.spec.experiment import Experiment, PlannedAction
from harness.spec.loadprofile import GammaArrivals, LoadProfile
from harness.spec.manifest import load_manifest, object_ref
from harness.spec.together import check_together

_TENANT = "default"


LONGEST_CLOCK_S = 86_400
"""A longer run is a slip in a number, and its arrivals would not fit into memory."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One action of the method, with its targets picked."""

    fault_id: str
    action: str
    title: str
    arguments: dict[str, Any]
    targets: tuple[str, ...]
    blast_radius: dict[str, int]
    starts_s: float | None
    ends_s: float | None
    disruptive: bool


@dataclass(frozen=True, slots=True)
class TraceUse:
    """What was replayed, and how many rows had to be cut down to the profile's limits."""

    file: str
    start_s: float
    duration_s: float
    speed: float
    rows: int
    shortened_rows: int


@dataclass(frozen=True, slots=True)
class Plan:
    """``duration_s`` is the load's length in scenario seconds, ``clock_s`` on the clock."""

    title: str
    seed: int
    time_scale: float
    duration_s: float
    profile_title: str
    peak_to_mean_min: float | None
    schedule: Schedule
    stats: Stats
    faults: tuple[PlannedFault, ...]
    trace: TraceUse | None
    has_hypothesis: bool = True

    @property
    def clock_s(self) -> float:
        return self.duration_s / self.time_scale

    def to_json(self) -> str:
        """Stable bytes: no path of this machine, no time of day, keys in one order."""
        data = {
            "title": self.title,
            "seed": self.seed,
            "time_scale": self.time_scale,
            "duration_s": self.duration_s,
            "load": {
                "title": self.profile_title,
                "peak_to_mean_min": self.peak_to_mean_min,
                "trace": _trace(self.trace),
            },
            "schedule": {
                "file": SCHEDULE_FILE,
                "sha256": self.schedule.sha256(),
                "load_steps_ns": list(self.schedule.steps_ns),
                "stats": self.stats,
            },
            "faults": [_fault(fault) for fault in self.faults],
        }
        return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def plan_experiment(
    experiment: Experiment,
    profile: LoadProfile,
    seed: int,
    fleet: Sequence[FleetNode],
    trace: TraceCut | None = None,
) -> Plan:
    """Pure but for reading the trace and the manifests; refuses what does not fit together."""
    if seed < 0:
        raise BadInput(f"--seed is {seed}, but must be 0 or more")
    time_scale = experiment.settings.time_scale
    if trace is None:
        duration_s, use = profile.duration_s, None
        if duration_s / time_scale > LONGEST_CLOCK_S:
            raise profile.document.mistake(
                ("duration_s",),
                f"is {duration_s:g}, which is {duration_s / time_scale:g} s on the clock at time_scale {time_scale:g}",
                f"a run takes at most {LONGEST_CLOCK_S} s, one day",
            )
        check_together(experiment, profile)
        schedule = schedule_of_profile(profile, time_scale, seed)
    else:
        schedule, use = schedule_of_trace(profile, trace)
        duration_s = round(use.duration_s / use.speed * time_scale, 6)
        check_together(experiment, profile, duration_s=duration_s)
    stats = schedule.stats(duration_s / time_scale)
    if trace is None:
        _check_peak(profile, stats, seed)
    return Plan(
        title=experiment.title,
        seed=seed,
        time_scale=time_scale,
        duration_s=duration_s,
        profile_title=profile.title,
        peak_to_mean_min=profile.peak_to_mean_min if trace is None else None,
        schedule=schedule,
        stats=stats,
        faults=_plan_faults(experiment, seed, fleet),
        trace=use,
        has_hypothesis=experiment.has_hypothesis,
    )


def schedule_of_profile(profile: LoadProfile, time_scale: float, seed: int) -> Schedule:
    t_ns = arrival_times_ns(profile.arrivals, profile.duration_s, time_scale, seed)
    if not len(t_ns):
        raise profile.document.mistake(
            ("arrivals",), f"no request arrives with seed {seed}", "raise the rate or duration_s"
        )
    prompt = draw_tokens(profile.tokens.prompt, len(t_ns), Chance(seed, "prompt_tokens"))
    output = draw_tokens(profile.tokens.output, len(t_ns), Chance(seed, "output_tokens"))
    if isinstance(profile.arrivals, GammaArrivals):
        steps_ns = rises_ns(t_ns, profile.duration_s / time_scale)
    else:
        steps_ns = load_steps_ns(profile.arrivals, profile.duration_s, time_scale, seed)
    return Schedule(t_ns, prompt, output, *_nobody(len(t_ns)), steps_ns=steps_ns)


def schedule_of_trace(profile: LoadProfile, cut: TraceCut) -> tuple[Schedule, TraceUse]:
    """Arrivals and lengths from the file; the profile gives the client's patience and the limits for lengths."""
    rows, seconds = cut_rows(cut)
    if seconds / cut.speed > LONGEST_CLOCK_S:
        raise BadInput(
            f"--speed is {cut.speed:g}, so {seconds:g} s of the trace take {seconds / cut.speed:g} s on the clock",
            hint=f"a run takes at most {LONGEST_CLOCK_S} s, one day; shorten --trace-duration, or raise --speed",
        )
    start_ns = round(cut.start_s * NS_PER_S)
    t_ns = np.array([round((row.t_ns - start_ns) / cut.speed) for row in rows], dtype=np.int64)
    prompt = np.array([row.prompt_tokens for row in rows], dtype=np.int64)
    output = np.array([row.output_tokens for row in rows], dtype=np.int64)
    limits = profile.spec.trace
    short_prompt = prompt if limits.prompt_tokens_max is None else np.minimum(prompt, limits.prompt_tokens_max)
    short_output = output if limits.output_tokens_max is None else np.minimum(output, limits.output_tokens_max)
    shortened = int(((short_prompt != prompt) | (short_output != output)).sum())
    use = TraceUse(cut.file.name, cut.start_s, seconds, cut.speed, len(rows), shortened)
    steps_ns = rises_ns(t_ns, seconds / cut.speed)
    return Schedule(t_ns, short_prompt, short_output, *_nobody(len(rows)), steps_ns=steps_ns), use


def _nobody(count: int) -> tuple[np.ndarray[Any, np.dtype[np.str_]], np.ndarray[Any, np.dtype[np.str_]]]:
    """Tenant and session of requests that belong to one tenant and to no session."""
    return np.full(count, _TENANT), np.full(count, "")


def _check_peak(profile: LoadProfile, stats: Stats, seed: int) -> None:
    measured, wanted = stats["peak_to_mean"], profile.peak_to_mean_min
    if wanted is not None and isinstance(measured, float) and measured < wanted:
        raise profile.document.mistake(
            ("peak_to_mean_min",),
            f"the schedule of seed {seed} has a peak-to-mean of {measured:g}, but the profile promises {wanted:g}",
            "make bursts higher or shorter, take another seed, or promise less",
        )


def _plan_faults(experiment: Experiment, seed: int, fleet: Sequence[FleetNode]) -> tuple[PlannedFault, ...]:
    """A node that one fault has taken is not offered to the next."""
    faults: list[PlannedFault] = []
    taken: set[str] = set()
    for action in experiment.actions:
        targets, radius = _targets(experiment, action, seed, fleet, frozenset(taken))
        if isinstance(action.arguments, SpotInterruption):
            taken.update(targets)
        faults.append(
            PlannedFault(
                fault_id=action.fault_id,
                action=action.name,
                title=action.title,
                arguments=action.arguments.model_dump(mode="json"),
                targets=targets,
                blast_radius=radius,
                starts_s=action.arguments.starts_s,
                ends_s=action.arguments.ends_s,
                disruptive=action.arguments.disruptive,
            )
        )
    return tuple(faults)


def _targets(
    experiment: Experiment, action: PlannedAction, seed: int, fleet: Sequence[FleetNode], taken: frozenset[str]
) -> tuple[tuple[str, ...], dict[str, int]]:
    arguments = action.arguments
    if isinstance(arguments, SpotInterruption):
        rng = target_random(seed, action.fault_id)
        try:
            names = pick_nodes(
                [n for n in fleet if n.name not in taken], arguments.nodes.selector, arguments.nodes.count, rng
            )
        except BadInput as error:
            at = (*action.at, "provider", "arguments", "nodes")
            earlier = f"; {', '.join(sorted(taken))} already go to earlier faults" if taken else ""
            raise experiment.document.mistake(at, error.message + earlier, error.hint) from None
        gpus = {node.name: node.gpus for node in fleet}
        return names, {"nodes": len(names), "gpus": sum(gpus[name] for name in names)}
    if isinstance(arguments, ApplyObjects):
        objects = load_manifest(experiment.action_manifests[arguments.manifest])
        return tuple(object_ref(obj) for obj in objects), {"objects": len(objects)}
    return ("load",), {}


def _fault(fault: PlannedFault) -> dict[str, Any]:
    return {
        "fault_id": fault.fault_id,
        "action": fault.action,
        "title": fault.title,
        "arguments": fault.arguments,
        "targets": list(fault.targets),
        "blast_radius": fault.blast_radius,
        "starts_s": fault.starts_s,
        "ends_s": fault.ends_s,
        "disruptive": fault.disruptive,
    }


def _trace(use: TraceUse | None) -> dict[str, Any] | None:
    if use is None:
        return None
    return {
        "file": use.file,
        "start_s": use.start_s,
        "duration_s": use.duration_s,
        "speed": use.speed,
        "rows": use.rows,
        "shortened_rows": use.shortened_rows,
    }
