"""What Kueue's objects say of GPUs: how many a queue may give, what it gave to whom, and who still waits.

Shapes of kueue.x-k8s.io v1beta1 and v1beta2 (Kueue 0.17).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from harness.history.autoscaler import quantity
from harness.history.lives import GPU, Json, Life, condition, going


@dataclass(frozen=True, slots=True)
class Limit:
    """GPUs that a queue has of its own, and may borrow from its cohort; None: as many as there are."""

    own: int
    borrow: int | None
    cohort: str
    lend: int
    """Of its own GPUs, those that others of its cohort may have."""
    strict: bool
    """StrictFIFO: nobody is admitted before who came first."""


def limit_of(queue: Json) -> Limit:
    spec = queue.get("spec", {})
    cohort = str(spec.get("cohortName") or spec.get("cohort") or "")
    own, lend, borrow, free = 0, 0, 0, False
    for group in spec.get("resourceGroups") or ():
        for flavor in group.get("flavors") or ():
            for resource in flavor.get("resources") or ():
                if resource.get("name") != GPU:
                    continue
                nominal = round(quantity(str(resource.get("nominalQuota", 0))))
                own += nominal
                limit = resource.get("lendingLimit")
                lend += nominal if limit is None else min(nominal, round(quantity(str(limit))))
                free |= resource.get("borrowingLimit") is None
                borrow += round(quantity(str(resource.get("borrowingLimit") or 0)))
    allowed = None if cohort and free else borrow if cohort else 0
    return Limit(own, allowed, cohort, lend, spec.get("queueingStrategy") == "StrictFIFO")


def stopped(queue: Json) -> bool:
    """Whether somebody told it to admit nobody."""
    return str(queue.get("spec", {}).get("stopPolicy") or "None") != "None"


def given(workload: Json) -> tuple[str, int] | None:
    """The queue whose quota it holds, and how many GPUs of it; None while it holds none."""
    admission = workload.get("status", {}).get("admission")
    if not admission or condition(workload, "QuotaReserved").get("status") != "True" or finished(workload):
        return None
    sets = admission.get("podSetAssignments") or ()
    gpus = sum(round(quantity(str((s.get("resourceUsage") or {}).get(GPU, 0)))) for s in sets)
    return str(admission.get("clusterQueue", "")), gpus


def asked(workload: Json) -> int:
    """GPUs that all its pods ask for."""
    sets = workload.get("spec", {}).get("podSets") or ()
    return sum(int(s.get("count", 1)) * _of_pod(s.get("template", {})) for s in sets)


def _of_pod(template: Json) -> int:
    containers = template.get("spec", {}).get("containers") or ()
    wants = (
        {**(c.get("resources") or {}).get("limits", {}), **(c.get("resources") or {}).get("requests", {})}
        for c in containers
    )
    return sum(int(each.get(GPU, 0)) for each in wants)


def admitted(workload: Json) -> bool:
    return condition(workload, "Admitted").get("status") == "True"


def finished(workload: Json) -> bool:
    return condition(workload, "Finished").get("status") == "True"


def waits(workload: Json) -> bool:
    """Wants quota and has none. One that its owner took out of the queue (``active: false``) wants none."""
    active = workload.get("spec", {}).get("active") is not False
    here = not finished(workload) and not going(workload) and not backing_off(workload)
    return active and here and given(workload) is None


def backing_off(workload: Json) -> bool:
    """Evicted, and not in its queue again yet: Kueue puts it off for longer each time."""
    return condition(workload, "Requeued").get("status") == "False"


def order_of(workload: Json) -> tuple[int, str]:
    """Who comes first: the higher priority, then the elder."""
    meta = workload.get("metadata", {})
    return -int(workload.get("spec", {}).get("priority") or 0), str(meta.get("creationTimestamp") or "")


def owner(workload: Life) -> tuple[str, str]:
    """Kind and name of what it stands for: a Job, a JobSet, a pod. Garbage collection may have taken the reference."""
    for event in workload.seen:
        for each in event.object.get("metadata", {}).get("ownerReferences") or ():
            return str(each.get("kind", "")), str(each.get("name", ""))
    return "", ""


_NAMED_BY = {
    "Job": "batch.kubernetes.io/job-name",
    "JobSet": "jobset.sigs.k8s.io/jobset-name",
    "LeaderWorkerSet": "leaderworkerset.sigs.k8s.io/name",
    "RayCluster": "ray.io/cluster",
}
"""By the kind of what makes them, the label by which its pods name it."""


def is_of(pod: Life, workload: Life) -> bool:
    kind, name = owner(workload)
    if pod.namespace != workload.namespace or not name:
        return False
    if (uid := _owner_uid(workload)) and (own := _uid_of(pod, kind)):  # another may have had the name before
        return own == uid
    labels = pod.last.get("metadata", {}).get("labels") or {}
    if kind == "Pod":  # a group of plain pods has one workload, by the group's name
        return pod.name == name or labels.get("kueue.x-k8s.io/pod-group-name") == workload.name
    return kind in _NAMED_BY and labels.get(_NAMED_BY[kind]) == name


def _owner_uid(workload: Life) -> str:
    owners = (o for e in workload.seen for o in e.object.get("metadata", {}).get("ownerReferences") or ())
    return next((str(each.get("uid", "")) for each in owners), "")


def _uid_of(pod: Life, kind: str) -> str:
    """Of what made the pod, where that is of this kind."""
    owners = pod.last.get("metadata", {}).get("ownerReferences") or ()
    return next((str(each.get("uid", "")) for each in owners if each.get("kind") == kind), "")


@dataclass(slots=True)
class Books:
    """All queues and workloads at one moment, kept up version by version. ``queue_of``: by a LocalQueue's namespace and
    name, its ClusterQueue."""

    queue_of: dict[tuple[str, str], str]
    queues: dict[str, Json] = field(default_factory=dict)
    workloads: dict[str, Json] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    """Workloads (by uid) of which every pod has ended: what they were given is free, whoever has not noted it yet."""

    def take(self, life: Life, obj: Json | None) -> None:
        if life.kind == "ClusterQueue":
            place, key = self.queues, life.name
        else:
            place, key = self.workloads, life.uid
        if obj is None:
            place.pop(key, None)
        else:
            place[key] = obj

    def usage(self, without: Collection[str] = ()) -> dict[str, int]:
        """GPUs given, by queue; but for those given to ``without``."""
        used = dict.fromkeys(self.queues, 0)
        for uid, workload in self.workloads.items():
            if uid not in without and (held := given(workload)) is not None:
                used[held[0]] = used.get(held[0], 0) + held[1]
        return used

    def over(self) -> dict[str, tuple[int, int]]:
        """Queues and cohorts that gave more than they may: what they gave, and may give."""
        limits = {name: limit_of(queue) for name, queue in self.queues.items()}
        used = self.usage()
        found: dict[str, tuple[int, int]] = {}
        for name, limit in limits.items():
            if limit.borrow is not None and used[name] > limit.own + limit.borrow:
                found[f"ClusterQueue {name}"] = (used[name], limit.own + limit.borrow)
        for cohort in {limit.cohort for limit in limits.values() if limit.cohort}:
            members = [name for name, limit in limits.items() if limit.cohort == cohort]
            gave, may = sum(used[n] for n in members), sum(limits[n].own for n in members)
            if gave > may:
                found[f"cohort {cohort}"] = (gave, may)
        return found

    def fitting(self) -> Iterator[tuple[str, int, int]]:
        """Workloads that wait though there is quota for them: uid, what they ask for, what is free."""
        limits = {name: limit_of(queue) for name, queue in self.queues.items()}
        used = self.usage(without=self.done)
        turns = sorted(
            (uid for uid, w in self.workloads.items() if waits(w)), key=lambda u: order_of(self.workloads[u])
        )
        blocked: set[str] = set()
        for uid in turns:
            workload = self.workloads[uid]
            local = str(workload.get("spec", {}).get("queueName", ""))
            name = self.queue_of.get((str(workload.get("metadata", {}).get("namespace", "")), local), "")
            if name not in limits or name in blocked or stopped(self.queues[name]):
                continue
            free, wants = self._free(name, limits, used), asked(workload)
            if wants <= free:
                yield uid, wants, free
            elif limits[name].strict:
                blocked.add(name)

    def _free(self, name: str, limits: dict[str, Limit], used: dict[str, int]) -> int:
        limit = limits[name]
        own = limit.own - used[name]
        if not limit.cohort:
            return own
        members = [n for n, other in limits.items() if other.cohort == limit.cohort]
        # What a queue keeps for itself is nobody's but its own, and its own work takes that first.
        keeps = {n: limits[n].own - limits[n].lend for n in members}
        together = sum(limits[n].lend - max(0, used[n] - keeps[n]) for n in members) + max(0, keeps[name] - used[name])
        return together if limit.borrow is None else min(together, own + limit.borrow)
