"""The experiment-level control: makes the context, listens for signals and the parent, marks the steady states.

Chaos Toolkit hides what a control raises, except ``InterruptExecution``. So a context that cannot be made interrupts
the experiment, and actions refuse to run without one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from typing import Any

import click

from harness.errors import HarnessError
from harness.faults.heal import HealReport, heal_all
from harness.faults.log import FaultLog
from harness.faults.registry import FAULTS
from harness.faults.undo import UNDO_FILE, replay
from harness.hiding import experiment_without_secrets
from harness.kube.http import HttpKube
from harness.kube.port import ApiError
from harness.processes.parent import watch_parent
from harness.run.chaos import context as contexts
from harness.run.chaos.context import RunContext
from harness.run.chaos.interrupt import Interruption
from harness.run.chaos.lib import InterruptExecution
from harness.run.lease import RunLease, holder_of

logger = logging.getLogger("chaostoolkit")

HEAL_WITHIN_S = 10.0
"""Less than the supervisor waits after its SIGTERM, so that the journal is still written."""
LEASE_S = 4 * 3600
"""Nobody renews it here; on this host a process that died is told from one that lives."""
LEASE_WITHIN_S = 3.0
HEAL_WITHOUT_PARENT_S = 1.2
OWN_IN_FLIGHT_S = 0.3
"""For the requests that an interruption cut off: short, for who dies without a parent has two seconds in all."""
"""A process without a parent has two seconds left in all."""

_interruption = Interruption()
_here = threading.local()


def configure_control() -> None:
    """As early as Chaos Toolkit lets us: from here on no signal is lost."""
    _interruption.install()


def cleanup_control() -> None:
    _interruption.uninstall()


def before_experiment_control(context: dict[str, Any]) -> None:
    _interruption.install()
    click_context = click.get_current_context(silent=True)
    source = click_context.params.get("source") if click_context else None
    try:
        run = contexts.build_context(context, source, _interruption)
    except (HarnessError, OSError, ValueError) as error:
        contexts.set_current(None, f"the control of gpu-harness could not start: {error}")
        raise InterruptExecution(f"gpu-harness: {error}") from error
    run.fault_ids = contexts.fault_ids(context.get("method") or (), frozenset(FAULTS))
    contexts.set_current(run)
    logger.info("gpu-harness: run folder %s, target %s", run.run_dir, run.connection.target)
    watch_parent(_parent_is_gone)
    FaultLog(run.run_dir, run.clock).mark("chaos_ready")
    try:
        if run.on_its_own:
            run.interruption.run(_take_lease(run))
        run.interruption.run(run.wait_for_load())
    except (HarnessError, OSError, ValueError) as error:
        raise InterruptExecution(f"gpu-harness: {error}") from error


def after_experiment_control(context: dict[str, Any], state: dict[str, Any] | None = None) -> None:
    """Heals what no rollback healed: an experiment may have none, or name a rollback that failed. The journal, which
    ``state`` is, repeats the experiment, and is kept in the run's folder."""
    if state is not None and isinstance(state.get("experiment"), dict):
        state["experiment"] = experiment_without_secrets(state["experiment"])
    run = contexts.find_current()
    if run is None:
        return
    if replay(run.run_dir / UNDO_FILE).pending:
        report = heal(run)
        for line in (*report.left, *report.errors):
            logger.error("gpu-harness: not healed: %s", line)
    if run.on_its_own:
        run.interruption.run(_release_lease(run), shielded=True)


def after_hypothesis_control(context: dict[str, Any], state: dict[str, Any] | None = None) -> None:
    run = contexts.find_current()
    if run is None:
        return
    name = "steady_state_after" if run.method_started else "steady_state_before"
    value, detail = _steady_state(state or {})
    FaultLog(run.run_dir, run.clock).mark(name, value, detail)


def before_method_control(context: dict[str, Any]) -> None:
    if run := contexts.find_current():
        run.method_started = True


def after_method_control(context: dict[str, Any]) -> None:
    """Holds the recovery, unless somebody wants to leave."""
    run = contexts.find_current()
    # Chaos Toolkit calls this on its way out of a method that was broken off, too.
    if run is None or run.interruption.reason is not None or sys.exc_info()[0] is not None:
        return
    end_s = run.clock.scenario_s(run.clock.now_ns() - run.load_start_ns) + run.settings.recovery_s
    run.interruption.run(run.wait_for_scenario_s(end_s))


def before_rollback_control(context: dict[str, Any]) -> None:
    if run := contexts.find_current():
        run.in_rollback = True


def before_activity_control(context: dict[str, Any]) -> None:
    run = contexts.find_current()
    _here.fault_id = run.fault_ids.get(id(context)) if run else None
    _stop_if_interrupted(run)


def after_activity_control(context: dict[str, Any]) -> None:
    _stop_if_interrupted(contexts.find_current())


def current_fault_id() -> str | None:
    """Of the method action that runs in this thread; None for an action anywhere else, such as among the rollbacks."""
    fault_id: str | None = getattr(_here, "fault_id", None)
    return fault_id


def heal(run: RunContext) -> HealReport:
    """Not interruptible, but bounded."""
    within_s = HEAL_WITHOUT_PARENT_S if run.parent_gone else HEAL_WITHIN_S
    in_flight_s = OWN_IN_FLIGHT_S if run.interruption.reason else 0.0
    return run.interruption.run(
        heal_all(run.run_dir, run.connection, clock=run.clock, within_s=within_s, in_flight_s=in_flight_s),
        shielded=True,
    )


async def _take_lease(run: RunContext) -> None:
    async with run.connection.kube() as kube:
        await _lease(run, kube).acquire()


async def _release_lease(run: RunContext) -> None:
    try:
        async with (
            asyncio.timeout(LEASE_WITHIN_S),
            run.connection.kube() as kube,
        ):
            await _lease(run, kube).release()
    except (ApiError, OSError) as error:
        logger.warning("gpu-harness: the lease could not be given back: %s", error)


def _lease(run: RunContext, kube: HttpKube) -> RunLease:
    return RunLease(kube, run.settings.namespace, holder_of(run.run_dir), LEASE_S, run_dir=run.run_dir)


def _stop_if_interrupted(run: RunContext | None) -> None:
    """Between activities ``InterruptExecution`` is obeyed; among the rollbacks it would drop the remaining ones."""
    if run is not None and not run.in_rollback:
        run.interruption.raise_if_interrupted()


def _parent_is_gone() -> None:
    if run := contexts.find_current():
        run.parent_gone = True
    os.kill(os.getpid(), signal.SIGTERM)


def _steady_state(state: dict[str, Any]) -> tuple[str, str]:
    met = state.get("steady_state_met")
    if met:
        return "met", ""
    probes = state.get("probes") or [{}]
    last = probes[-1]
    name = (last.get("activity") or {}).get("name", "")
    if met is None or last.get("status") == "failed":
        exception = last.get("exception") or [""]
        return "error", f"{name}: {str(exception[-1]).strip() or 'it did not come to an end'}"
    return "not_met", f"{name}: {last.get('output')!r} is not within its tolerance"
