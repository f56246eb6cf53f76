"""Which resources a run records beside the usual ones: those of the systems that its experiment brings objects of."""

from __future__ import annotations

from harness.kube.port import RESOURCE_SLICE, Resource
from harness.run.record.recorder import RECORDED
from harness.spec.checks import GangSpec
from harness.spec.experiment import Experiment
from harness.stack.description import kinds
from harness.targets.manifests import BY_KIND, read_manifests


def recorded_beside(experiment: Experiment) -> tuple[Resource, ...]:
    """The kinds of its real components, and all kinds of the API groups of its manifests of which nothing is recorded
    anyway: with a claim for devices come the slices that they are taken from. PodGroups of another scheduler where the
    check ``gang`` names it."""
    of_components = kinds(experiment.settings.stack)
    brought = read_manifests((*experiment.manifest_files, *experiment.action_manifests.values()), of_components)
    groups = {resource.group for resource, _ in brought}
    if experiment.settings.world is not None and any(pool.dra for pool in experiment.settings.world.pools):
        groups.add(RESOURCE_SLICE.group)
    groups -= {"", *(resource.group for resource in RECORDED)} | _NEVER
    found = (*of_components, *(resource for resource in BY_KIND.values() if resource.group in groups))
    beside = [resource for resource in dict.fromkeys(found) if resource.kind not in {r.kind for r in RECORDED}]
    gangs = [POD_GROUPS[c.of] for c in experiment.settings.checks if isinstance(c, GangSpec) and c.of in POD_GROUPS]
    return (*beside, *gangs)


POD_GROUPS = {
    "kai": Resource("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup", True),
    "volcano": Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", True),
    "coscheduling": Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", True),
}
"""Of schedulers that cannot be had as Go modules: as their documentation has them, not run against the real ones."""


_NEVER = frozenset({"coordination.k8s.io", "rbac.authorization.k8s.io"})
"""Leases change every few seconds and roles never; neither says anything of how a system behaves."""
