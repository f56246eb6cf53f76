"""Which pods belong together as a gang, by whatever system says so: a PodGroup's own word, else labels and annotations.

Objects and labels as of Kubernetes v1.37 (scheduling.k8s.io), KAI, Volcano, the coscheduling plugin, Kueue,
LeaderWorkerSet, JobSet and KubeRay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.history.lives import Json, Life, lives
from harness.history.tables import ObjectEvent

if TYPE_CHECKING:
    from harness.history.reader import History

_LWS = "leaderworkerset.sigs.k8s.io"


@dataclass(frozen=True, slots=True)
class Group:
    """``need``: members without which it is of no use; None where nothing recorded says so, and then all that are
    there need each other. ``object`` is its PodGroup, where it has one that was recorded."""

    name: str
    namespace: str
    need: int | None
    members: tuple[Life, ...]
    object: Life | None

    @property
    def born_ns(self) -> int:
        return self.object.born_ns if self.object else min(member.born_ns for member in self.members)

    @property
    def first(self) -> ObjectEvent:
        return self.object.seen[0] if self.object else min((m.seen[0] for m in self.members), key=lambda e: e.index)

    @property
    def gone(self) -> ObjectEvent | None:
        """When it ended as a whole. A group that is only labels on pods ends with the last of them."""
        if self.object is not None:
            return self.object.gone
        ends = [member.gone for member in self.members]
        known = [end for end in ends if end is not None]
        return max(known, key=lambda e: e.index) if len(known) == len(ends) else None


def groups_of(history: History) -> tuple[Group, ...]:
    """Every gang of the recording, PodGroups first."""
    members: dict[tuple[str, str], list[Life]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for pod in lives(history.objects, "Pod"):
        if (mine := membership(pod.last)) is None:
            continue
        name, size = mine
        members.setdefault((pod.namespace, name), []).append(pod)
        if size is not None:
            sizes[pod.namespace, name] = size
    sizes |= {
        (ray.namespace, ray.name): size
        for ray in lives(history.objects, "RayCluster")
        if (ray.namespace, ray.name) in members and (size := _of_a_ray_cluster(ray.last)) is not None
    }
    found: list[Group] = []
    named: dict[tuple[str, str], list[Life]] = {}
    for group in lives(history.objects, "PodGroup"):
        named.setdefault((group.namespace, group.name), []).append(group)
    for key, groups in named.items():
        for group, own in zip(groups, _shared(groups, members.pop(key, ())), strict=True):
            if (need := _least(group.last)) is not None:
                found.append(Group(group.name, group.namespace, need, own, group))
    found += [Group(name, space, sizes.get((space, name)), tuple(own), None) for (space, name), own in members.items()]
    return tuple(found)


def _shared(groups: Sequence[Life], pods: Sequence[Life]) -> list[tuple[Life, ...]]:
    """Of each of the PodGroups that had one name, one after another, the pods that came before it was gone."""
    shares: list[list[Life]] = [[] for _ in groups]
    for pod in pods:
        there = (share for g, share in zip(groups, shares, strict=True) if g.gone is None or pod.born_ns < g.gone.t_ns)
        next(there, shares[-1]).append(pod)
    return [tuple(share) for share in shares]


def _least(group: Json) -> int | None:
    """A PodGroup's own minimum: native ones have it in a policy, and without one are no gang."""
    spec = group.get("spec", {})
    policy = spec.get("schedulingPolicy", {}).get("gang")
    least = policy.get("minCount", 1) if policy else spec.get("minMember")
    return None if least is None else int(least)


def membership(pod: Json) -> tuple[str, int | None] | None:
    """The name of the pod's gang, and its size where the pod itself says so."""
    return next((found for rule in _RULES if (found := rule(pod))), None)


def _native(pod: Json) -> tuple[str, int | None] | None:
    name = (pod.get("spec", {}).get("schedulingGroup") or {}).get("podGroupName")
    return (str(name), None) if name else None


def _annotated(key: str) -> Callable[[Json], tuple[str, int | None] | None]:
    return lambda pod: (str(name), None) if (name := _said(pod, "annotations").get(key)) else None


def _labelled(key: str) -> Callable[[Json], tuple[str, int | None] | None]:
    return lambda pod: (str(name), None) if (name := _said(pod, "labels").get(key)) else None


def _kueue(pod: Json) -> tuple[str, int | None] | None:
    name = _said(pod, "labels").get("kueue.x-k8s.io/pod-group-name")
    return (name, _number(_said(pod, "annotations").get("kueue.x-k8s.io/pod-group-total-count"))) if name else None


def _leader_worker_set(pod: Json) -> tuple[str, int | None] | None:
    labels = _said(pod, "labels")
    name, index = labels.get(f"{_LWS}/name"), labels.get(f"{_LWS}/group-index")
    if not name or index is None:
        return None
    return f"{name}-{index}", _number(_said(pod, "annotations").get(f"{_LWS}/size"))


_RULES: tuple[Callable[[Json], tuple[str, int | None] | None], ...] = (
    _native,
    _annotated("pod-group-name"),  # KAI
    _annotated("scheduling.k8s.io/group-name"),  # Volcano
    _labelled("scheduling.x-k8s.io/pod-group"),  # coscheduling
    _kueue,
    _leader_worker_set,
    _labelled("jobset.sigs.k8s.io/jobset-name"),
    _labelled("ray.io/cluster"),
)
"""What a scheduler goes by comes before what only made the pods."""


def _said(pod: Json, what: str) -> dict[str, str]:
    return pod.get("metadata", {}).get(what) or {}


def _of_a_ray_cluster(cluster: Json) -> int | None:
    """A head, and the workers below which its groups may not go (ray.io/v1); None where a group may go to none."""
    groups = (cluster.get("spec") or {}).get("workerGroupSpecs") or ()
    least = [int(group.get("minReplicas") or 0) * int(group.get("numOfHosts") or 1) for group in groups]
    return 1 + sum(least) if least and all(least) else None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
