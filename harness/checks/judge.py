"""All checks by name, and the one place where a history is judged."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.checks.capacity import capacity
from harness.checks.change_undone import change_undone
from harness.checks.claims import claims
from harness.checks.clocks_agree import clocks_agree
from harness.checks.controllers import controllers
from harness.checks.device import device
from harness.checks.failure_class import with_class
from harness.checks.faults_observed import faults_observed
from harness.checks.gang import gang
from harness.checks.graceful_drain import graceful_drain
from harness.checks.load_offered import load_offered
from harness.checks.machine_did_not_stall import machine_did_not_stall
from harness.checks.metrics_path import metrics_path
from harness.checks.pdb import pdb
from harness.checks.quota import quota
from harness.checks.recorder_complete import recorder_complete
from harness.checks.recovery import recovery
from harness.checks.requests import requests
from harness.checks.requests_accounted import requests_accounted
from harness.checks.routing import routing
from harness.checks.run_complete import run_complete
from harness.checks.scale_down import scale_down
from harness.checks.scale_up import scale_up
from harness.checks.slo import slo
from harness.checks.steady_before import steady_before
from harness.checks.story import retold
from harness.checks.versions_known import versions_known
from harness.collector import collector_resting
from harness.diagnosis.diagnose import diagnose
from harness.verdict import Finding, Role, Status, Verdict, merge, with_causes

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import CheckSpec

CHECKS: dict[str, Callable[[History, Any], Finding]] = {
    "slo": slo,
    "scale_up": scale_up,
    "scale_down": scale_down,
    "graceful_drain": graceful_drain,
    "pdb": pdb,
    "gang": gang,
    "capacity": capacity,
    "device": device,
    "claims": claims,
    "controllers": controllers,
    "metrics_path": metrics_path,
    "requests": requests,
    "recovery": recovery,
    "routing": routing,
    "quota": quota,
}
"""Judged where the experiment asks for them, each with the model of the same name in ``harness.spec.checks``."""

VALIDITY: dict[str, Callable[[History], Finding]] = {
    "faults_observed": faults_observed,
    "load_offered": load_offered,
    "recorder_complete": recorder_complete,
    "steady_before": steady_before,
    "change_undone": change_undone,
    "machine_did_not_stall": machine_did_not_stall,
    "run_complete": run_complete,
    "requests_accounted": requests_accounted,
    "clocks_agree": clocks_agree,
    "versions_known": versions_known,
}
"""Judged always."""


@collector_resting()
def judge(history: History, specs: Sequence[CheckSpec]) -> Verdict:
    """The checks in the order asked for, then the validity checks, merged by the one rule."""
    findings = [_answer(spec.name, Role.CHECK, partial(_judged, history, spec)) for spec in specs]
    findings += [_answer(name, Role.VALIDITY, partial(check, history)) for name, check in VALIDITY.items()]
    return explained(history, merge(findings))


def explained(history: History, verdict: Verdict) -> Verdict:
    """The verdict with what is behind its fails, each of which tells the cause that the whole run bears out."""
    try:
        causes = diagnose(history, verdict.findings)
    except Exception as error:  # as with a check that raises: what was found stays found
        why = f" The diagnosis itself failed, so it names no cause: {_told(error)}."
        return replace(
            verdict, findings=tuple(replace(f, story=f.story + why) if f.story else f for f in verdict.findings)
        )
    of = {check: cause for cause in reversed(causes) for check in cause.explains}
    findings = tuple(
        replace(f, story=retold(f.story, of[f.check].sentence, of[f.check].change)) if f.story and f.check in of else f
        for f in verdict.findings
    )
    return with_causes(replace(verdict, findings=findings), causes)


def _judged(history: History, spec: CheckSpec) -> Finding:
    return with_class(history, CHECKS[spec.name](history, spec))


def _answer(name: str, role: Role, ask: Callable[[], Finding]) -> Finding:
    """A check that raises is UNKNOWN, with the error and its place: a defect of ours is no verdict on the system."""
    try:
        return ask()
    except Exception as error:
        sentence = f"the check itself failed, so it says nothing: {_told(error)}"
        return Finding(name, role, Status.UNKNOWN, sentence, 0, {"error": type(error).__name__})


def _told(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} (at {frame.filename.rsplit('/', 1)[-1]}:{frame.lineno})"
