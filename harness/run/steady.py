"""Whether the workload under test is steady, read from the Kubernetes API."""

from __future__ import annotations

from dataclasses import dataclass

from harness.faults.sight import is_ready
from harness.kube.port import DEPLOYMENT, NODE, POD, Kube
from harness.selectors import parse_selector


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
        nodes_not_ready=tuple(n["metadata"]["name"] for n in nodes if not is_ready(n)),
    )


async def count_pending(kube: Kube, namespace: str, selector: str) -> int:
    """Pods of the workload in phase Pending."""
    pods = await kube.list(POD, namespace, label_selector=selector)
    return sum(pod.get("status", {}).get("phase") == "Pending" for pod in pods.items)
