"""What the run of one experiment must be allowed to do, as needs and as RBAC objects for ``kubectl apply``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import yaml

from harness.errors import GuardRefused
from harness.faults.permissions import Need, access_reviews, needs_of_a_run, needs_of_objects, rbac_objects
from harness.kube.port import Json
from harness.run.record.beside import recorded_beside
from harness.run.record.recorder import RECORDED
from harness.spec.experiment import Experiment, load_experiment
from harness.stack.description import kinds
from harness.targets.manifests import read_manifests


def needs_of(experiment: Experiment) -> tuple[Need, ...]:
    """Of the recorder, the lease and the faults with their healing. The workload itself is for others to bring."""
    namespace = experiment.settings.workload.namespace
    brought = read_manifests(experiment.action_manifests.values(), kinds(experiment.settings.stack))
    return (
        *needs_of_a_run((*RECORDED, *recorded_beside(experiment)), namespace),
        *needs_of_objects(brought, namespace),
        *(need for action in experiment.actions for need in action.fault.needs(namespace)),
    )


def rbac_text(path: Path) -> str:
    """YAML documents. Raises BadInput for an experiment that is none."""
    experiment = load_experiment(path)
    objects = rbac_objects(needs_of(experiment), experiment.settings.workload.namespace)
    return f"# what `gpu-harness run {path}` needs, and no more\n" + yaml.safe_dump_all(objects, sort_keys=False)


class AccessReviewer(Protocol):
    async def review_access(self, review: Json) -> Json: ...


async def missing(kube: AccessReviewer, needs: Iterable[Need]) -> list[str]:
    """What the cluster would refuse, each as a verb on a resource."""
    asked = access_reviews(dict.fromkeys(needs))
    answers = await asyncio.gather(*(kube.review_access(review) for _, _, review in asked))
    return [
        f"{verb} {need.plural}{f' in {need.namespace}' if need.namespace else ''}"
        for (need, verb, _), answer in zip(asked, answers, strict=True)
        if not (answer.get("status") or {}).get("allowed")
    ]


async def check_allowed(kube: AccessReviewer, experiment: Experiment) -> None:
    """GuardRefused before anything is touched: a fault that may be made and not healed is worse than none."""
    if refused := await missing(kube, needs_of(experiment)):
        raise GuardRefused(
            f"this run may not {', '.join(refused)}",
            hint=f"gpu-harness rbac {experiment.path} prints the role that it needs; `run --dry-run` asks for each",
        )
