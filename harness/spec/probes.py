"""Arguments of our Chaos Toolkit probes, which a steady-state hypothesis asks."""

from __future__ import annotations

from harness.spec.model import Count, LabelSelector, SpecModel

PROBES_MODULE = "harness.run.chaos.probes"


class ProbeArguments(SpecModel):
    """What any of our probes takes."""


class ReadyReplicas(ProbeArguments):
    """How many pods of the workload are Ready."""

    selector: LabelSelector | None = None


class ServiceHealthy(ProbeArguments):
    """Whether the service answers ``/health`` with 200."""


class GpuNodesReady(ProbeArguments):
    """How many nodes with GPUs are Ready."""

    gpus_min: Count = 1


PROBES: dict[str, type[ProbeArguments]] = {
    "ready_replicas": ReadyReplicas,
    "service_healthy": ServiceHealthy,
    "gpu_nodes_ready": GpuNodesReady,
}
