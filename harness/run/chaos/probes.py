"""Probes for experiments: ``module: harness.run.chaos.probes``. What they see is read from the Kubernetes API."""

# No postponed annotations here: `chaos discover` reads the types of the signatures as they are.

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from harness.errors import HarnessError
from harness.kube.port import ApiError, Kube
from harness.run.chaos.context import RunContext, current
from harness.run.chaos.lib import ActivityFailed
from harness.run.steady import count_pending, read_workload

__all__ = ["pods_pending", "replicas_ready", "workload_steady"]

logger = logging.getLogger("chaostoolkit")

LOOK_WITHIN_S = 15.0
"""Clock seconds one look at the API may take."""
T = TypeVar("T")


def workload_steady(after_s: float = 0.0, ready_min: int = 1) -> bool:
    """Waits for that scenario second. True when all wanted replicas are Ready, ``ready_min`` at least, and no node is
    NotReady."""
    run = current()
    state = _look(run, lambda kube: read_workload(kube, run.settings.namespace, run.settings.selector), after_s)
    if problem := state.problem(ready_min):
        logger.warning("gpu-harness: not steady: %s", problem)
    return problem is None


def replicas_ready() -> int:
    """Ready replicas of the workload's Deployments."""
    run = current()
    return _look(run, lambda kube: read_workload(kube, run.settings.namespace, run.settings.selector)).ready


def pods_pending() -> int:
    """Pods of the workload in phase Pending."""
    run = current()
    return _look(run, lambda kube: count_pending(kube, run.settings.namespace, run.settings.selector))


def _look(run: RunContext, look: Callable[[Kube], Awaitable[T]], after_s: float = 0.0) -> T:
    async def work() -> T:
        await run.wait_for_scenario_s(after_s)
        async with (
            asyncio.timeout(LOOK_WITHIN_S),
            run.connection.kube() as kube,
        ):
            return await look(kube)

    try:
        return run.interruption.run(work())
    except (HarnessError, ApiError, OSError) as error:
        raise ActivityFailed(str(error) or f"no answer within {LOOK_WITHIN_S:g} s") from error
