"""The recorded objects as lives: one object from first sight to disappearance, and what the checks read of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.history.recording import Recording, once
from harness.history.tables import ObjectEvent, ObjectEventType
from harness.selectors import parse_selector

if TYPE_CHECKING:
    from harness.history.reader import History

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
RUN_LABEL = "gpu-harness.dev/run"
"""On every object that a run makes by plan: the run's name."""
DISRUPTION_TAINTS = frozenset(
    {
        "karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler", "aws-node-termination-handler/spot-itn",
        "node.kubernetes.io/unschedulable",
    }
)  # fmt: skip
"""Taints by which somebody announces that a node's pods will be moved."""


@dataclass(frozen=True, slots=True)
class Life:
    """One object from first sight to disappearance, in the order of its watch."""

    kind: str
    namespace: str
    name: str
    uid: str
    seen: tuple[ObjectEvent, ...]
    gone: ObjectEvent | None = None
    """The DELETED event, or the GAP after which it was no longer listed."""

    @property
    def born_ns(self) -> int:
        return self.seen[0].t_ns

    @property
    def last(self) -> Json:
        return self.seen[-1].object

    def when(self, holds: Callable[[Json], bool]) -> ObjectEvent | None:
        """The first version for which ``holds``."""
        return next((event for event in self.seen if holds(event.object)), None)

    def at(self, t_ns: int) -> Json | None:
        """The version known at ``t_ns``; None before its first and after its last moment."""
        if self.gone is not None and t_ns >= self.gone.t_ns:
            return None
        known = bisect_right(self.seen, t_ns, key=lambda event: event.t_ns)
        return self.seen[known - 1].object if known else None


def lives(objects: Sequence[ObjectEvent], kind: str) -> tuple[Life, ...]:
    """All objects of a kind, by first sight. After a gap, whatever is not listed again is gone since the gap."""
    if isinstance(objects, Recording):
        return objects.kept(("lives", kind), lambda: _lives(objects.of_kind(kind), kind))
    return _lives([event for event in objects if event.kind == kind], kind)


def _lives(events: Sequence[ObjectEvent], kind: str) -> tuple[Life, ...]:
    seen: dict[str, list[ObjectEvent]] = {}
    gone: dict[str, ObjectEvent] = {}
    gap: ObjectEvent | None = None
    unlisted: set[str] = set()
    for event in events:
        if event.type is ObjectEventType.GAP:
            gap, unlisted = event, {key for key in seen if key not in gone}
            continue
        key = event.uid or f"{event.namespace}/{event.name}"
        if event.type is ObjectEventType.LISTED:
            unlisted.discard(key)
        elif gap is not None:
            gone |= dict.fromkeys(unlisted, gap)
            gap, unlisted = None, set()
        seen.setdefault(key, []).append(event)
        if event.type is ObjectEventType.DELETED:
            gone[key] = event
    if gap is not None and any(e.type is ObjectEventType.LISTED and e.index > gap.index for e in events):
        gone |= dict.fromkeys(unlisted, gap)
    return tuple(
        Life(kind, versions[0].namespace, versions[0].name, key, tuple(versions), gone.get(key))
        for key, versions in seen.items()
    )


class ByName:
    """Objects by name and time: what comes again under a name (a node that registers anew, a StatefulSet's pod) is
    another object, and what befell the first is not its story."""

    def __init__(self, lives: Iterable[Life], name: Callable[[Life], str] = lambda life: life.name) -> None:
        """``name``: where they are known by another than their own, as claims are by their node's."""
        self._named: dict[str, list[Life]] = {}
        for life in sorted(lives, key=lambda life: life.born_ns):
            self._named.setdefault(name(life), []).append(life)

    def at(self, name: str, t_ns: int) -> Life | None:
        """The last that had come by then, though it may be gone; the first where none had, for watches of different
        kinds are not ordered among each other."""
        named = self._named.get(name, ())
        return next((life for life in reversed(named) if life.born_ns <= t_ns), named[0] if named else None)

    def during(self, name: str, since_ns: int, until_ns: int) -> list[Life]:
        """All that were there in between, in the order in which they came."""
        there = (life for life in self._named.get(name, ()) if life.born_ns <= until_ns)
        return [life for life in there if life.gone is None or life.gone.t_ns >= since_ns]


def name_of(obj: Json) -> str:
    return str(obj.get("metadata", {}).get("name", ""))


def condition(obj: Json, kind: str) -> Json:
    conditions = obj.get("status", {}).get("conditions") or ()
    return next((c for c in conditions if c.get("type") == kind), {})


def ready(obj: Json) -> bool:
    """Of a pod or a node."""
    return condition(obj, "Ready").get("status") == "True"


def going(obj: Json) -> bool:
    return bool(obj.get("metadata", {}).get("deletionTimestamp"))


def terminal(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def node_of(pod: Json) -> str:
    return str(pod.get("spec", {}).get("nodeName") or "")


def bound_ns(pod: Life) -> int:
    """When it had a node first; that it was seen at all where it never had one."""
    bound = pod.when(lambda obj: bool(node_of(obj)))
    return bound.t_ns if bound else pod.born_ns


def node_of_claim(claim: Life) -> str:
    """The name that its node has, or will have."""
    return str(claim.last.get("status", {}).get("nodeName") or claim.name)


def unschedulable(pod: Json) -> bool:
    scheduled = condition(pod, "PodScheduled")
    return scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable"


def without_room(pod: Json) -> bool:
    """The scheduler has said so, and it still has no node."""
    return unschedulable(pod) and not node_of(pod)


def running(pod: Json) -> bool:
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return any("running" in (status.get("state") or {}) for status in statuses)


def gpus_of(pod: Json) -> int:
    containers = pod.get("spec", {}).get("containers") or ()
    return sum(int((c.get("resources") or {}).get("limits", {}).get(GPU, 0)) for c in containers)


def labels_of(obj: Json) -> dict[str, str]:
    return dict(obj.get("metadata", {}).get("labels") or {})


def template_labels(obj: Json) -> dict[str, str] | None:
    """Of the pods that it makes; None where its template does not tell, as in a cut recording."""
    labels = ((obj.get("spec", {}).get("template") or {}).get("metadata") or {}).get("labels")
    return dict(labels) if labels else None


def owner_of(obj: Json) -> str:
    """The uid of the controlling owner."""
    owners = obj.get("metadata", {}).get("ownerReferences") or ()
    return next((str(o.get("uid", "")) for o in owners if o.get("controller")), "")


@once
def workload_pods(history: History) -> tuple[Life, ...]:
    """Pods of the workload under test, by first sight."""
    workload = history.run.workload
    namespace, selector = workload.get("namespace", ""), parse_selector(workload.get("selector", ""))
    return tuple(
        pod
        for pod in lives(history.objects, "Pod")
        if pod.namespace == namespace and selector.matches(labels_of(pod.last))
    )


def pods_of(history: History, target: Life) -> list[Life]:
    """Of the workload's pods those that the target has made, itself or by its ReplicaSets."""
    sets = {life.uid for life in lives(history.objects, "ReplicaSet") if owner_of(life.last) == target.uid}
    return [pod for pod in workload_pods(history) if owner_of(pod.last) in sets | {target.uid}]


def usable(node: Json, pod: Json) -> bool:
    """Whether the pod could run there: Ready, its GPUs allocatable, no taint it does not tolerate."""
    return ready(node) and (allocatable(node) > 0 or not gpus_of(pod)) and not untolerated(node, pod)


def allocatable(node: Json) -> int:
    return int(node.get("status", {}).get("allocatable", {}).get(GPU, 0))


def untolerated(node: Json, pod: Json) -> bool:
    """Startup taints, not-ready taints and the like: whatever keeps this pod off this node."""
    tolerations = pod.get("spec", {}).get("tolerations") or ()
    taints = [t for t in node.get("spec", {}).get("taints") or () if t.get("effect") in ("NoSchedule", "NoExecute")]
    return not all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in taints)


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and (toleration.get("value") or "") == (taint.get("value") or "")


def disrupted(node: Json) -> bool:
    return any(taint.get("key") in DISRUPTION_TAINTS for taint in node.get("spec", {}).get("taints") or ())
