"""Arguments of our Chaos Toolkit probes, which a steady-state hypothesis asks."""

from __future__ import annotations

from harness.spec.model import Count, SecondsFromZero, SpecModel

PROBES_MODULE = "harness.run.chaos.probes"


class ProbeArguments(SpecModel):
    """What any of our probes takes."""


class WorkloadSteady(ProbeArguments):
    """At scenario second ``after_s``: all wanted replicas (at least ``ready_min``) and all nodes are Ready."""

    after_s: SecondsFromZero = 0.0
    ready_min: Count = 1


class ReplicasReady(ProbeArguments):
    """How many replicas of the workload are Ready."""


class PodsPending(ProbeArguments):
    """How many pods of the workload are Pending."""


PROBES: dict[str, type[ProbeArguments]] = {
    "workload_steady": WorkloadSteady,
    "replicas_ready": ReplicasReady,
    "pods_pending": PodsPending,
}
