"""Where a pod fits: the scheduler's filters, its scores, and how it words a refusal. Pure but for ``NodeRoom.hold``.

What a pod asks of other pods (spread, affinity) is in ``topology``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fakes.controllers.objects import controller_of, is_terminal, is_terminating, name_of, uid_of
from fakes.controllers.resources import CPU, MEMORY, PODS, Amounts, amounts, requested
from harness.kube.port import Json

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"

NO_MATCH = "node(s) didn't match Pod's node affinity/selector"
UNTOLERATED = "node(s) had untolerated taint(s)"
CORDONED = "node(s) were unschedulable"
TOO_MANY_PODS = "Too many pods"
HOPELESS = "Preemption is not helpful for scheduling"
NOBODY = "No preemption victims found for incoming pod"

PREFERENCE = 2.0
"""Weight of the preferred node affinity against that of free resources, as in Kubernetes' default profile."""

IMAGE_LEAST, IMAGE_MOST = 23 * 2**20, 1000 * 2**20
"""Bytes of an image below which its presence counts for nothing, and from which on it counts in full."""

# A pod that asks for nothing still weighs something when nodes are compared (Kubernetes' own figures).
UNASKED = {CPU: 100, MEMORY: 200 * 1024 * 1024}


Rank = tuple[float, int, str]
"""How well a node suits; the smallest is the best, and its last part is the node's name."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one node does not take the pod; ``final`` when no eviction could change that."""

    reasons: tuple[str, ...]
    final: bool


@dataclass(slots=True)
class NodeRoom:
    """A node and what its pods hold."""

    node: Json
    total: dict[str, int]
    used: Counter[str] = field(default_factory=Counter)
    weight: Counter[str] = field(default_factory=Counter)  # used, with UNASKED filled in
    owners: Counter[str] = field(default_factory=Counter)
    images: dict[str, int] = field(default_factory=dict)  # name → bytes

    @classmethod
    def of(cls, node: Json) -> NodeRoom:
        status = node.get("status") or {}
        images = {
            str(n): int(i.get("sizeBytes") or 0) for i in status.get("images") or [] for n in i.get("names") or ()
        }
        return cls(node, amounts(status.get("allocatable")), images=images)

    @property
    def name(self) -> str:
        return name_of(self.node)

    def copy(self) -> NodeRoom:
        """For trials that are thrown away."""
        return NodeRoom(
            self.node, self.total, Counter(self.used), Counter(self.weight), Counter(self.owners), self.images
        )

    def hold(self, pod: Json, times: int = 1) -> None:
        """``times=-1`` gives it back."""
        asked = requested(pod)
        for counter, values in ((self.used, asked), (self.weight, UNASKED | asked)):
            for resource, amount in values.items():
                counter[resource] += amount * times
        self.used[PODS] += times
        self.owners[owner_uid(pod)] += times


def holds_room(pod: Json) -> bool:
    """Until its containers have ended for good; how long its object stays after that plays no part."""
    return not is_terminal(pod)


def refuse(pod: Json, room: NodeRoom) -> Refusal | None:
    """The first filter that says no, in Kubernetes' order."""
    return refuse_asked(pod, requested(pod), room)


def refuse_asked(pod: Json, asked: Amounts, room: NodeRoom) -> Refusal | None:
    """As ``refuse``, for a caller that knows what the pod asks for."""
    node, spec = room.node, pod["spec"]
    tolerations = spec.get("tolerations") or []
    if node.get("spec", {}).get("unschedulable") and not tolerated(
        {"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule"}, tolerations
    ):
        return Refusal((CORDONED,), True)
    taints = node.get("spec", {}).get("taints") or []
    if any(t.get("effect") in ("NoSchedule", "NoExecute") and not tolerated(t, tolerations) for t in taints):
        return Refusal((UNTOLERATED,), True)
    if not matches_node(spec, node):
        return Refusal((NO_MATCH,), True)
    return _refuse_resources(asked, room)


def _refuse_resources(asked: Amounts, room: NodeRoom) -> Refusal | None:
    reasons: list[str] = []
    final = False
    if PODS in room.total and room.used[PODS] + 1 > room.total[PODS]:
        reasons.append(TOO_MANY_PODS)
    for resource, amount in sorted(asked.items()):
        total = room.total.get(resource, 0)
        if amount > 0 and room.used[resource] + amount > total:
            reasons.append(f"Insufficient {resource}")
            final = final or amount > total
    return Refusal(tuple(reasons), final) if reasons else None


def tolerated(taint: Json, tolerations: Iterable[Json]) -> bool:
    return any(_tolerates(t, taint) for t in tolerations)


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def matches_node(spec: Json, node: Json) -> bool:
    """nodeSelector and the required node affinity: all of the first, any term of the second."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(k) != v for k, v in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    needed = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if needed is None:
        return True
    return any(_matches_term(term, node) for term in needed.get("nodeSelectorTerms") or [])


def _matches_term(term: Json, node: Json) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False  # an empty term matches nothing
    labels = node["metadata"].get("labels") or {}
    names = {"metadata.name": name_of(node)}
    return all(_matches(e, labels) for e in expressions) and all(_matches(e, names) for e in fields)


def _matches(expression: Json, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and value.lstrip("-").isdigit() and int(value) > int(values[0])
        case "Lt":
            return value is not None and value.lstrip("-").isdigit() and int(value) < int(values[0])
    return False


def rank(pod: Json, asked: Amounts, room: NodeRoom) -> Rank:
    """Smallest wins: the fullest resource mix loses, then many siblings lose, then the name decides."""
    shares = [
        min(1.0, (room.weight[resource] + amount) / room.total[resource])
        for resource, amount in {**UNASKED, **asked}.items()
        if room.total.get(resource)
    ]
    fullness = sum(shares) / len(shares) if shares else 0.0
    unwanted = sum(
        1
        for taint in room.node.get("spec", {}).get("taints") or []
        if taint.get("effect") == "PreferNoSchedule" and not tolerated(taint, pod["spec"].get("tolerations") or [])
    )
    wished = PREFERENCE * preferred_share(pod["spec"], room.node)
    return round(fullness + unwanted - wished - _images_there(pod, room), 9), room.owners[owner_uid(pod)], room.name


def _images_there(pod: Json, room: NodeRoom) -> float:
    """0 to 1: how much of the pod's images the node has already."""
    if not room.images:
        return 0.0
    containers = pod["spec"].get("containers") or []
    there = sum(room.images.get(str(c.get("image", "")), 0) for c in containers)
    most = IMAGE_MOST * len(containers)
    return min(1.0, max(0.0, (there - IMAGE_LEAST) / (most - IMAGE_LEAST)))


def preferred_share(spec: Json, node: Json) -> float:
    """How much of the preferred node affinity a node fulfils, by weight: 0 to 1."""
    terms = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "preferredDuringSchedulingIgnoredDuringExecution"
    ) or []
    total = sum(int(t["weight"]) for t in terms)
    return sum(int(t["weight"]) for t in terms if _matches_term(t["preference"], node)) / total if total else 0.0


def owner_uid(pod: Json) -> str:
    return str((controller_of(pod) or {}).get("uid") or uid_of(pod))


def explain(refusals: Mapping[str, Refusal], preemption: str = "") -> str:
    """Kubernetes' sentence for a pod that fits nowhere; ``preemption`` says what came of trying to make room."""
    if not refusals:
        return "no nodes available to schedule pods"
    reasons = histogram([reason for refusal in refusals.values() for reason in refusal.reasons])
    said = f"0/{len(refusals)} nodes are available: {reasons}."
    return f"{said} preemption: {preemption}" if preemption else said


def histogram(reasons: Sequence[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))


def placement_state(pod: Json) -> tuple[object, ...]:
    """What of a pod can make room, take it, or make it schedulable."""
    return pod["spec"], is_terminating(pod), is_terminal(pod)


def node_state(node: Json) -> tuple[object, ...]:
    """What of a node can make room, take it, or make it fit."""
    spec = node.get("spec") or {}
    return (
        spec.get("taints"),
        spec.get("unschedulable"),
        node["metadata"].get("labels"),
        (node.get("status") or {}).get("allocatable"),
        (node.get("status") or {}).get("images"),
        is_terminating(node),
    )
