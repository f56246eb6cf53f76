"""Kueue's objects in a story: a queue with its quota, and Jobs that ask it for GPUs."""

from __future__ import annotations

from typing import Any

from story import Story

Json = dict[str, Any]
NAMESPACE = "inference"


def queue(story: Story, name: str, gpus: int, at_s: float = -5, **spec: Any) -> None:
    """A ClusterQueue with a LocalQueue of the same name."""
    resources = [{"name": "nvidia.com/gpu", "nominalQuota": str(gpus)}]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "any", "resources": resources}]}]
    story.put(at_s, "ClusterQueue", name, {"spec": {"resourceGroups": groups} | spec}, None)
    story.put(at_s, "LocalQueue", name, {"spec": {"clusterQueue": name}})


def asks(story: Story, at_s: float, job: str, gpus: int, of: str = "q", uid: str = "") -> None:
    """A Job's Workload that waits in ``of``."""
    container = {"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
    sets = [{"name": "main", "count": gpus, "template": {"spec": {"containers": [container]}}}]
    meta = {
        "ownerReferences": [{"kind": "Job", "name": job, "uid": uid or f"uid-{job}"}],
        "creationTimestamp": f"{at_s:09.3f}",
    }
    story.put(at_s, "Workload", f"job-{job}", {"metadata": meta, "spec": {"queueName": of, "podSets": sets}})


def gets(story: Story, at_s: float, job: str, gpus: int, of: str = "q") -> None:
    """It is admitted."""
    sets = [{"name": "main", "count": gpus, "resourceUsage": {"nvidia.com/gpu": str(gpus)}}]
    conditions = [{"type": t, "status": "True"} for t in ("QuotaReserved", "Admitted")]
    status = {"admission": {"clusterQueue": of, "podSetAssignments": sets}, "conditions": conditions}
    story.change(at_s, "Workload", f"job-{job}", lambda w: w.update(status=status))


def loses(story: Story, at_s: float, job: str) -> None:
    """It is evicted, and waits again."""
    conditions = [{"type": t, "status": "False"} for t in ("QuotaReserved", "Admitted")]
    status = {"conditions": [*conditions, {"type": "Evicted", "status": "True", "reason": "Preempted"}]}
    story.change(at_s, "Workload", f"job-{job}", lambda w: w.update(status=status))


def ends(story: Story, at_s: float, job: str) -> None:
    def finish(workload: Json) -> None:
        workload["status"]["conditions"].append({"type": "Finished", "status": "True"})

    story.change(at_s, "Workload", f"job-{job}", finish)


def runs(story: Story, at_s: float, job: str, number: int = 0) -> str:
    """A pod of the Job, bound at once."""
    name = f"{job}-{number}"
    story.pod(name, "on-demand-1", at_s, bound_s=at_s, app="train")
    story.change(at_s, "Pod", name, lambda p: p["metadata"]["labels"].update({"batch.kubernetes.io/job-name": job}))
    return name


def reserves(story: Story, at_s: float, job: str, gpus: int, state: str = "Pending", of: str = "q") -> None:
    """It gets quota, and an admission check has not said Ready yet."""
    sets = [{"name": "main", "count": gpus, "resourceUsage": {"nvidia.com/gpu": str(gpus)}}]
    status = {
        "admission": {"clusterQueue": of, "podSetAssignments": sets},
        "admissionChecks": [{"name": "room", "state": state}],
        "conditions": [{"type": "QuotaReserved", "status": "True"}],
    }
    story.change(at_s, "Workload", f"job-{job}", lambda w: w.update(status=status))


def put_off(story: Story, at_s: float, job: str) -> None:
    """Its check says Retry: it is evicted, and not in the queue before Kueue takes it back."""
    conditions = [{"type": t, "status": "False"} for t in ("QuotaReserved", "Admitted")]
    conditions += [{"type": "Evicted", "status": "True", "reason": "AdmissionCheck"}]
    conditions += [{"type": "Requeued", "status": "False", "reason": "AdmissionCheck"}]
    story.change(at_s, "Workload", f"job-{job}", lambda w: w.update(status={"conditions": conditions}))


def shut(story: Story, at_s: float, job: str, number: int = 0) -> str:
    """A pod of the Job behind Kueue's gate."""
    name = f"{job}-{number}"
    story.pod(name, None, at_s, app="train")
    labels = {"batch.kubernetes.io/job-name": job}
    story.change(at_s, "Pod", name, lambda p: p["metadata"]["labels"].update(labels))
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    story.change(at_s, "Pod", name, lambda p: p["spec"].update(schedulingGates=gates))
    return name


def opens(story: Story, at_s: float, pod: str) -> None:
    story.change(at_s, "Pod", pod, lambda p: p["spec"].pop("schedulingGates"))
