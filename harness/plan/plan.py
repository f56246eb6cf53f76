"""The plan: all that a seed fixes before anything is touched. Same experiment, profile, fleet and seed: same bytes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness.clock import NS_PER_S
from harness.errors import BadInput
from harness.faults.fault import Target
from harness.faults.scene import Scene
from harness.plan.chance import target_random
from harness.plan.drawn import NOTHING_DRAWN, Drawn
from harness.plan.load_faults import with_load_faults
from harness.plan.make import LONGEST_CLOCK_S, make_schedule, schedule_of_trace
from harness.plan.mixed import mix_stats
from harness.plan.schedule import SCHEDULE_FILE, Schedule, Stats
from harness.plan.trace import TraceCut
from harness.plan.traceuse import TraceUse
from harness.spec.experiment import Experiment, PlannedAction
from harness.spec.loadprofile import LoadProfile
from harness.spec.manifest import load_manifest, object_ref
from harness.spec.together import check_together

TIME_SCALE_MIN, TIME_SCALE_MAX = 1e-3, 1000.0
"""Scenario seconds per clock second: a thousand times slower is no run, and faster no machine keeps up with."""


_STRETCHES_MAX = 600


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One action of the method, with its targets picked."""

    fault_id: str
    action: str
    title: str
    arguments: dict[str, Any]
    targets: tuple[str, ...]
    blast_radius: dict[str, int]
    starts_s: float
    ends_s: float
    disruptive: bool
    reach: tuple[str, ...] = ()
    """Nodes that it may take out, also where its target is their pool; ``reach_at_once`` of them at the same time."""
    reach_at_once: int = 0
    takes_nodes: bool = False
    """Its nodes are lost, and others must come for them."""


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
    profile_traces: tuple[TraceUse, ...] = ()
    """Those that the profile itself names; ``trace`` is the one that a person gave in its place."""
    has_hypothesis: bool = True
    drawn: Drawn = NOTHING_DRAWN
    deadline_s: float = float("inf")
    """After so many clock seconds clients give up; those that would hang up later do not."""
    notes: tuple[str, ...] = ()
    """What a person should know of it, one sentence each; of no matter to a run, and so not in its JSON."""

    @property
    def clock_s(self) -> float:
        return self.duration_s / self.time_scale

    @property
    def hang_ups_after_deadline(self) -> int:
        more = self.schedule.more
        return 0 if more is None else int((more.hang_up_ns >= self.deadline_s * NS_PER_S).sum())

    @property
    def targets(self) -> frozenset[str]:
        """Everything that any of its faults was planned on."""
        return frozenset(name for fault in self.faults for name in fault.targets)

    def with_faults(self, faults: tuple[PlannedFault, ...], has_hypothesis: bool) -> Plan:
        return replace(self, faults=faults, has_hypothesis=has_hypothesis)

    def with_notes(self, *notes: str) -> Plan:
        return replace(self, notes=(*self.notes, *notes))

    def _drawn(self) -> dict[str, Any]:
        """Only what is there to say."""
        bounds = {
            name: {bound.key: {"tokens": bound.tokens, "ratio": bound.ratio} for bound in found}
            for name, found in (("prompt_at_bound", self.drawn.prompt), ("output_at_bound", self.drawn.output))
            if found
        }
        late = {"hang_ups_after_deadline": late} if (late := self.hang_ups_after_deadline) else {}
        turns = self.drawn.turns
        if turns is None:
            return bounds | late
        counts = {key: value for key, value in asdict(turns).items() if key != "think_ns"}
        return bounds | late | {"turns": counts | {"think_s_p50": turns.think_s_p50(self.time_scale)}}

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
                **({"traces": [_trace(use) for use in self.profile_traces]} if self.profile_traces else {}),
            },
            "schedule": {
                "file": SCHEDULE_FILE,
                "sha256": self.schedule.sha256(),
                "load_steps_ns": list(self.schedule.steps_ns),
                "stats": self.stats,
                "arrivals": _arrivals(self.schedule, self.clock_s),
                **({} if (mix := mix_stats(self.schedule)) is None else {"mix": asdict(mix)}),
                **self._drawn(),
            },
            "faults": [_fault(fault) for fault in self.faults],
        }
        return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def plan_experiment(
    experiment: Experiment,
    profile: LoadProfile,
    seed: int,
    scene: Scene,
    trace: TraceCut | None = None,
) -> Plan:
    """Pure but for reading the trace and the manifests; refuses what does not fit together."""
    time_scale = experiment.settings.time_scale
    if trace is None:
        check_together(experiment, profile)
    load = _with_faults(_load(profile, seed, time_scale, trace), experiment, seed)
    if trace is not None:
        check_together(experiment, profile, duration_s=load.duration_s)
    return _plan(experiment.title, profile, seed, time_scale, load).with_faults(
        _plan_faults(experiment, seed, scene), experiment.has_hypothesis
    )


def plan_profile(profile: LoadProfile, seed: int, time_scale: float, trace: TraceCut | None = None) -> Plan:
    """The load alone: a plan without an experiment, and so without faults."""
    if not TIME_SCALE_MIN <= time_scale <= TIME_SCALE_MAX:
        raise BadInput(
            f"--time-scale is {time_scale:g}, but must be from {TIME_SCALE_MIN:g} to {TIME_SCALE_MAX:g}",
            hint="scenario s per clock s",
        )
    return _plan(profile.title, profile, seed, time_scale, _load(profile, seed, time_scale, trace))


@dataclass(frozen=True, slots=True)
class _Load:
    schedule: Schedule
    stats: Stats
    duration_s: float
    trace: TraceUse | None
    profile_traces: tuple[TraceUse, ...] = ()
    drawn: Drawn = NOTHING_DRAWN


def _load(profile: LoadProfile, seed: int, time_scale: float, trace: TraceCut | None) -> _Load:
    if seed < 0:
        raise BadInput(f"--seed is {seed}, but must be 0 or more")
    if trace is not None:
        schedule, use = schedule_of_trace(profile, trace, time_scale, seed)
        duration_s = round(use.lasts_s * time_scale, 6)
        return _Load(schedule, schedule.stats(duration_s / time_scale), duration_s, use)
    duration_s = profile.duration_s
    if duration_s / time_scale > LONGEST_CLOCK_S:
        raise profile.document.mistake(
            ("duration_s",),
            f"is {duration_s:g}, which is {duration_s / time_scale:g} s on the clock at time_scale {time_scale:g}",
            f"a run takes at most {LONGEST_CLOCK_S} s, one day",
        )
    made = make_schedule(profile, time_scale, seed)
    stats = made.schedule.stats(duration_s / time_scale)
    _check_peak(profile, stats, seed)
    return _Load(made.schedule, stats, duration_s, None, made.traces, made.drawn)


def _with_faults(load: _Load, experiment: Experiment, seed: int) -> _Load:
    """The peak that a profile promises is its own: a crowd that a fault adds is none of it."""
    time_scale = experiment.settings.time_scale
    faults = ((action.fault_id, action.fault) for action in experiment.actions)
    schedule = with_load_faults(load.schedule, faults, time_scale, seed)
    if schedule is load.schedule:
        return load
    return replace(load, schedule=schedule, stats=schedule.stats(load.duration_s / time_scale))


def _plan(title: str, profile: LoadProfile, seed: int, time_scale: float, load: _Load) -> Plan:
    return Plan(
        title=title,
        seed=seed,
        time_scale=time_scale,
        duration_s=load.duration_s,
        profile_title=profile.title,
        peak_to_mean_min=profile.peak_to_mean_min if load.trace is None else None,
        schedule=load.schedule,
        stats=load.stats,
        faults=(),
        trace=load.trace,
        profile_traces=load.profile_traces,
        drawn=load.drawn,
        deadline_s=profile.send.deadline_s,
    )


def _check_peak(profile: LoadProfile, stats: Stats, seed: int) -> None:
    measured, wanted = stats["peak_to_mean"], profile.peak_to_mean_min
    if wanted is not None and isinstance(measured, float) and measured < wanted:
        raise profile.document.mistake(
            ("peak_to_mean_min",),
            f"the schedule of seed {seed} has a peak-to-mean of {measured:g}, but the profile promises {wanted:g}",
            "make bursts higher or shorter, take another seed, or promise less",
        )


def _plan_faults(experiment: Experiment, seed: int, scene: Scene) -> tuple[PlannedFault, ...]:
    """A node that one fault has taken is not offered to the next."""
    faults: list[PlannedFault] = []
    taken: set[str] = set()
    brought = {
        name: tuple(object_ref(obj) for obj in load_manifest(file))
        for name, file in experiment.action_manifests.items()
    }
    scene = replace(scene, objects=brought)
    for action in experiment.actions:
        left = replace(scene, nodes=[node for node in scene.nodes if node.name not in taken])
        targets = _targets(experiment, action, seed, left, frozenset(taken))
        if action.fault.takes_nodes:
            taken.update(targets)
        reach = action.fault.reach(scene, targets)
        faults.append(
            PlannedFault(
                fault_id=action.fault_id,
                action=action.name,
                title=action.title,
                arguments=action.fault.model_dump(mode="json", exclude_unset=True),
                targets=targets,
                blast_radius=action.fault.radius(scene, targets),
                starts_s=action.fault.starts_s,
                ends_s=action.fault.ends_s,
                disruptive=action.fault.disruptive,
                reach=reach,
                reach_at_once=action.fault.reach_at_once(len(reach)),
                takes_nodes=action.fault.takes_nodes,
            )
        )
    return tuple(faults)


def _targets(
    experiment: Experiment, action: PlannedAction, seed: int, scene: Scene, taken: frozenset[str]
) -> tuple[str, ...]:
    try:
        return action.fault.pick(scene, target_random(seed, action.fault_id))
    except BadInput as error:
        at = (*action.at, "provider", "arguments")
        if action.fault.kind is Target.NODES:
            at = (*at, "nodes")
        earlier = f"; {', '.join(sorted(taken))} already go to earlier faults" if taken else ""
        raise experiment.document.mistake(at, error.message + earlier, error.hint) from None


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


def _arrivals(schedule: Schedule, clock_s: float) -> dict[str, Any]:
    """The curve: arrivals in each stretch of so many clock seconds, few enough stretches to be read."""
    every_s = next((s for s in (1, 10, 60, 600) if clock_s <= s * _STRETCHES_MAX), 3600)
    return {"every_s": every_s, "counts": schedule.counts(every_s, clock_s)}


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
        "failed_rows": use.failed_rows,
        "scale": use.scale,
        "loop": use.loop,
        "lasts_s": use.lasts_s,
    }
