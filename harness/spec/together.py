"""What only shows when the experiment and its load profile are looked at together."""

from __future__ import annotations

from harness.errors import BadInput
from harness.spec.checks import SloSpec
from harness.spec.experiment import Experiment, PlannedAction
from harness.spec.loadprofile import LoadProfile


def check_together(experiment: Experiment, profile: LoadProfile, *, duration_s: float | None = None) -> None:
    """Every action must have run its course while load flows.

    ``duration_s`` (scenario seconds) replaces the profile's own where a trace sets it.
    """
    lasts_s = profile.duration_s if duration_s is None else duration_s
    warm_up_s = experiment.settings.phases.warm_up_s
    if warm_up_s >= lasts_s:
        at = (*experiment.settings.at, "phases", "warm_up_s")
        raise experiment.document.mistake(at, f"the warm-up of {warm_up_s:g} s leaves nothing of {lasts_s:g} s of load")
    for action in experiment.actions:
        _check_fits(experiment, action, lasts_s, "the trace" if duration_s is not None else "the load profile")
        starts_s = action.fault.starts_s
        if action.fault.disruptive and starts_s < warm_up_s:
            raise _at(experiment, action, "after_s", f"begins at {starts_s:g} s, within the warm-up of {warm_up_s:g} s",
                      "a fault needs a steady phase before it; begin later, or shorten phases.warm_up_s")  # fmt: skip
    _check_phases(experiment)
    profile.check_patience(experiment.settings.time_scale)


def _check_phases(experiment: Experiment) -> None:
    """A check on a phase that cannot come would be UNKNOWN after every run."""
    disruptive = any(action.fault.disruptive for action in experiment.actions)
    for index, check in enumerate(experiment.settings.checks):
        if not isinstance(check, SloSpec):
            continue
        at = (*experiment.settings.at, "checks", index, "slo", "phase")
        if check.phase in ("fault", "recovery") and not disruptive:
            hint = "take phase steady or all, or add a fault to the method"
            raise experiment.document.mistake(at, f"there is no phase {check.phase!r}: no action is disruptive", hint)
        if check.phase == "warm_up" and experiment.settings.phases.warm_up_s == 0:
            raise experiment.document.mistake(at, "there is no phase 'warm_up': phases.warm_up_s is 0")


def _check_fits(experiment: Experiment, action: PlannedAction, lasts_s: float, load: str) -> None:
    starts_s, ends_s = action.fault.starts_s, action.fault.ends_s
    if starts_s < lasts_s and ends_s <= lasts_s:
        return
    course = f"begins at {starts_s:g} s and ends at {ends_s:g} s" if ends_s > starts_s else f"begins at {starts_s:g} s"
    hint = "begin earlier, shorten it, or lengthen the load; all are scenario seconds"
    raise _at(experiment, action, "after_s", f"{action.name} {course}, but {load} ends at {lasts_s:g} s", hint)


def _at(experiment: Experiment, action: PlannedAction, key: str, message: str, hint: str) -> BadInput:
    return experiment.document.mistake((*action.at, "provider", "arguments", key), message, hint)
