"""Probes for experiments: ``module: harness.run.chaos.probes``. What they see is read from the Kubernetes API."""

# No postponed annotations here: `chaos discover` reads the types of the signatures as they are.

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from harness.errors import HarnessError
from harness.faults.pick import parse_selector
from harness.kube.http import HttpKube
from harness.kube.port import DEPLOYMENT, NODE, POD, ApiError, Json, Kube
from harness.run.chaos.context import RunContext, current
from harness.run.chaos.lib import ActivityFailed

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

    async def look(kube: Kube) -> int:
        pods = await kube.list(POD, run.settings.namespace, label_selector=run.settings.selector)
        return sum(pod.get("status", {}).get("phase") == "Pending" for pod in pods.items)

    return _look(run, look)


@dataclass(frozen=True, slots=True)
class WorkloadState:
    deployments: tuple[str, ...]
    wanted: int
    ready: int
    nodes_not_ready: tuple[str, ...]

    def problem(self, ready_min: int) -> str | None:
        if not self.deployments:
            return "no Deployment makes pods that match the workload's selector"
        if self.ready < self.wanted or self.ready < ready_min:
            return f"{self.ready} replicas are Ready, {self.wanted} are wanted and {ready_min} needed at least"
        if self.nodes_not_ready:
            return f"not Ready: {', '.join(self.nodes_not_ready)}"
        return None


async def read_workload(kube: Kube, namespace: str, selector: str) -> WorkloadState:
    """Deployments belong to the workload by the labels of the pods they make: their own labels may differ."""
    wanted_pods = parse_selector(selector)
    deployments = [
        d
        for d in (await kube.list(DEPLOYMENT, namespace)).items
        if wanted_pods.matches(d["spec"]["template"]["metadata"].get("labels") or {})
    ]
    nodes = (await kube.list(NODE)).items
    return WorkloadState(
        deployments=tuple(d["metadata"]["name"] for d in deployments),
        wanted=sum(d["spec"].get("replicas", 1) for d in deployments),
        ready=sum(d.get("status", {}).get("readyReplicas", 0) for d in deployments),
        nodes_not_ready=tuple(n["metadata"]["name"] for n in nodes if not _is_ready(n)),
    )


def _is_ready(node: Json) -> bool:
    conditions = node.get("status", {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _look(run: RunContext, look: Callable[[Kube], Awaitable[T]], after_s: float = 0.0) -> T:
    async def work() -> T:
        await run.wait_for_scenario_s(after_s)
        async with asyncio.timeout(LOOK_WITHIN_S), HttpKube(run.connection.kubeconfig) as kube:
            return await look(kube)

    try:
        return run.interruption.run(work())
    except (HarnessError, ApiError, OSError) as error:
        raise ActivityFailed(str(error) or f"no answer within {LOOK_WITHIN_S:g} s") from error
