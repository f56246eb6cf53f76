"""An experiment's activities as virtual time can direct them: ours, in Chaos Toolkit's order. Refuses all others."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import BadInput
from harness.spec.actions import ACTIONS_MODULE
from harness.spec.document import KeyPath
from harness.spec.experiment import Experiment, PlannedAction
from harness.spec.probes import PROBES, PROBES_MODULE, ProbeArguments
from harness.spec.variables import Variables, read_variables

_HINT = "virtual time directs the actions and probes of harness.run.chaos alone: run it without --virtual"


@dataclass(frozen=True, slots=True)
class Probe:
    name: str
    func: str
    arguments: ProbeArguments
    tolerance: Any = None

    def within_tolerance(self, value: object) -> bool:
        """By Chaos Toolkit's rules for the tolerances that ``read_script`` lets through."""
        tolerance = self.tolerance
        if isinstance(tolerance, Mapping):
            tolerance = tolerance["range"]
        if isinstance(tolerance, Sequence) and not isinstance(tolerance, str):
            if len(tolerance) == 2:
                return isinstance(value, int | float) and bool(tolerance[0] <= value <= tolerance[1])
            return value in tolerance
        return bool(value == tolerance)


@dataclass(frozen=True, slots=True)
class Step:
    """One activity of the method: an action or a probe. In the background the next one does not wait for it."""

    what: PlannedAction | Probe
    background: bool


@dataclass(frozen=True, slots=True)
class Script:
    hypothesis: tuple[Probe, ...]
    after_method: bool
    """Whether the hypothesis is looked at again after the method."""
    steps: tuple[Step, ...]
    heals: bool
    """Whether the rollbacks heal."""


def read_script(experiment: Experiment) -> Script:
    """BadInput names the first activity that needs Chaos Toolkit itself."""
    world = experiment.settings.world
    if world is not None and world.processes:
        at: KeyPath = ("extensions", 0, "world", "processes")
        hint = "run without --virtual, or let the fake model server take their place"
        raise experiment.document.mistake(at, "real processes have no virtual time", hint)
    raw = experiment.raw
    variables = read_variables(experiment.document, os.environ)
    probes = (raw.get("steady-state-hypothesis") or {}).get("probes") or ()
    hypothesis = tuple(
        _probe(experiment, variables, ("steady-state-hypothesis", "probes", i), p) for i, p in enumerate(probes)
    )
    strategy = ((raw.get("runtime") or {}).get("hypothesis") or {}).get("strategy", "default")
    if strategy == "continuously":
        at = ("runtime", "hypothesis", "strategy")
        raise experiment.document.mistake(at, "a steady state that is looked at all the time", _HINT)
    actions = {action.at: action for action in experiment.actions}
    steps = tuple(_step(experiment, variables, ("method", i), a, actions) for i, a in enumerate(raw["method"]))
    rollbacks = raw.get("rollbacks") or ()
    for i, activity in enumerate(rollbacks):
        if _ours(activity) != (ACTIONS_MODULE, "heal"):
            raise _foreign(experiment, ("rollbacks", i), activity)
    return Script(hypothesis, strategy == "default", steps, bool(rollbacks))


def _step(
    experiment: Experiment,
    variables: Variables,
    at: KeyPath,
    activity: Mapping[str, Any],
    actions: Mapping[KeyPath, PlannedAction],
) -> Step:
    if activity.get("pauses") is not None:
        raise experiment.document.mistake((*at, "pauses"), "Chaos Toolkit's own pauses are clock seconds", _HINT)
    background = bool(activity.get("background"))
    if at in actions:
        return Step(actions[at], background)
    return Step(_probe(experiment, variables, at, activity), background)


def _probe(experiment: Experiment, variables: Variables, at: KeyPath, activity: Mapping[str, Any]) -> Probe:
    module, func = _ours(activity)
    if module != PROBES_MODULE:
        raise _foreign(experiment, at, activity)
    provider = activity["provider"]
    where = (*at, "provider", "arguments")
    arguments = variables.fill(provider.get("arguments"), experiment.document, where)
    tolerance = activity.get("tolerance")
    if isinstance(tolerance, Mapping) and tolerance.get("type") != "range":
        what = f"a tolerance of type {tolerance.get('type')}"
        raise experiment.document.mistake((*at, "tolerance"), f"{what} needs Chaos Toolkit", _HINT)
    return Probe(str(activity["name"]), func, PROBES[func].model_validate(arguments or {}), tolerance)


def _ours(activity: Mapping[str, Any]) -> tuple[str, str]:
    provider = activity.get("provider") or {}
    return str(provider.get("module", "")), str(provider.get("func", ""))


def _foreign(experiment: Experiment, at: KeyPath, activity: Mapping[str, Any]) -> BadInput:
    name = activity.get("name") or activity.get("ref") or "this activity"
    return experiment.document.mistake(at, f"{name!r} needs Chaos Toolkit itself", _HINT)
