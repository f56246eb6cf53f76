"""What a run would touch, by whose leave, and how it would be undone. Changes nothing.

Permissions are asked for (SelfSubjectAccessReview) where a cluster of ``gpu-harness up`` stands in this folder; one
that the run starts for itself has none to ask yet, and allows everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from harness.errors import ExitCode
from harness.faults.permissions import Need, access_reviews
from harness.kube.http import HttpKube
from harness.kube.port import Json
from harness.plan.plan import PlannedFault
from harness.printable import line
from harness.run.allowing import needs_of
from harness.run.preparing import Prepared
from harness.spec.experiment import PlannedAction
from harness.targets.base import Connection


def dry_run(prepared: Prepared, connection_file: Path, say: Callable[[str], None]) -> ExitCode:
    """FAIL where a permission is missing. Asked is the cluster of others that was planned on, or that of ``up``."""
    experiment, namespace = prepared.experiment, prepared.experiment.settings.workload.namespace
    for planned, action in zip(prepared.plan.faults, experiment.actions, strict=True):
        for told in _told(planned, action, namespace):
            say(told)
    needs = needs_of(experiment)
    if prepared.survey is not None:
        missing = asyncio.run(_ask(prepared.survey.connection, needs, say))
        say("nothing was touched; with --yes, and all of these permissions, it would be")
        return ExitCode.FAIL if missing else ExitCode.PASS
    if not connection_file.exists():
        say("permissions (the cluster will be the run's own, which allows them):")
        for need in dict.fromkeys(needs):
            say(f"  {need}")
        say("nothing was touched")
        return ExitCode.PASS
    missing = asyncio.run(_ask(Connection.read(connection_file), needs, say))
    say("nothing was touched")
    return ExitCode.FAIL if missing else ExitCode.PASS


def _told(planned: PlannedFault, action: PlannedAction, namespace: str) -> list[str]:
    fault = action.fault
    targets = ", ".join(planned.targets) or "picked when it begins"
    own = "; ".join(map(str, fault.needs(namespace))) or "nothing of its own"
    return [
        f"{planned.fault_id}: {line(planned.title)}",
        f"  at {planned.starts_s:g} s, {fault.kind.value}: {targets}",
        f"  undone by: {', '.join(fault.undone_by) or 'nothing: it leaves no change'}",
        f"  needs: {own}",
    ]


async def _ask(connection: Connection, needs: tuple[Need, ...], say: Callable[[str], None]) -> int:
    missing = 0
    say(f"permissions on the cluster of {connection.kubeconfig}:")
    async with connection.kube() as kube:
        for need, verb, review in access_reviews(dict.fromkeys(needs)):
            allowed = await _allowed(kube, review)
            missing += not allowed
            where = f" in {need.namespace}" if need.namespace else ""
            say(f"  {'yes' if allowed else 'NO '} {verb} {need.plural}{where}")
    return missing


async def _allowed(kube: HttpKube, review: Json) -> bool:
    answer = await kube.review_access(review)
    return bool((answer.get("status") or {}).get("allowed"))
