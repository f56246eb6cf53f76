"""What the run of one experiment must be allowed to do, as needs and as RBAC objects for ``kubectl apply``."""

from __future__ import annotations

from pathlib import Path

import yaml

from harness.faults.permissions import Need, needs_of_a_run, needs_of_objects, rbac_objects
from harness.run.record.recorder import RECORDED
from harness.spec.experiment import Experiment, load_experiment
from harness.targets.manifests import read_manifests


def needs_of(experiment: Experiment) -> tuple[Need, ...]:
    """Of the recorder, the lease and the faults with their healing. The workload itself is for others to bring."""
    namespace = experiment.settings.workload.namespace
    brought = read_manifests(experiment.action_manifests.values())
    return (
        *needs_of_a_run(RECORDED, namespace),
        *needs_of_objects(brought, namespace),
        *(need for action in experiment.actions for need in action.fault.needs(namespace)),
    )


def rbac_text(path: Path) -> str:
    """YAML documents. Raises BadInput for an experiment that is none."""
    experiment = load_experiment(path)
    objects = rbac_objects(needs_of(experiment), experiment.settings.workload.namespace)
    return f"# what `gpu-harness run {path}` needs, and no more\n" + yaml.safe_dump_all(objects, sort_keys=False)
