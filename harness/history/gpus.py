"""GPUs over time: what nodes have, what pods hold, who serves and who waits. One pass over pods and nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.history.lives import (
    GPU,
    Json,
    Life,
    allocatable,
    disrupted,
    going,
    gpus_of,
    labels_of,
    lives,
    name_of,
    node_of,
    ready,
    running,
    terminal,
    without_room,
)
from harness.history.tables import ObjectEvent

if TYPE_CHECKING:
    from harness.history.reader import History

POOL, CAPACITY_TYPE, INSTANCE_TYPE = (
    "karpenter.sh/nodepool", "karpenter.sh/capacity-type", "node.kubernetes.io/instance-type",
)  # fmt: skip
_GPU_COUNT = "nvidia.com/gpu.count"


@dataclass(frozen=True, slots=True)
class NodeNow:
    """One GPU node at a moment. ``gpus`` is what it was bought for, ``usable`` what it lets pods have."""

    name: str
    gpus: int
    usable: int
    spot: bool
    leaving: bool
    """Deleted, or announced to go, so that its replacement may be there already."""
    price_per_hour: float | None


@dataclass(frozen=True, slots=True)
class PodNow:
    """One pod with GPUs at a moment."""

    name: str
    node: str
    gpus: int
    serving: bool
    waiting: bool


class Fleet:
    """All nodes and pods of one moment. Its sums are kept up with each change, for there are many of those."""

    def __init__(self, workload: Collection[str] = ()) -> None:
        """``workload`` holds the uids of the pods that serve the load."""
        self._workload = workload
        self._nodes: dict[str, NodeNow] = {}
        self._pods: dict[str, PodNow] = {}
        self._serving_on: Counter[str] = Counter()
        self._replicas_on: Counter[str] = Counter()
        self._there: Counter[str] = Counter()
        self._sizes: Counter[int] = Counter()
        self.gpus = self.serving = self.held = self.waiting = 0
        """In GPUs: there, with a working pod, held by a pod, asked for in vain."""
        self.spot_nodes = self.leaving_nodes = 0
        self.replicas = self.replicas_on_spot = 0
        """Working pods of the workload."""
        self.price_per_hour = 0.0
        self.unpriced: Counter[str] = Counter()

    @property
    def nodes(self) -> int:
        return len(self._nodes)

    @property
    def asked(self) -> int:
        """Held, and asked for by pods that found no room."""
        return self.held + self.waiting

    @property
    def node_gpus_max(self) -> int:
        return max((size for size, n in self._sizes.items() if n), default=1)

    def holds(self, uid: str, node: NodeNow | None, pod: PodNow | None) -> bool:
        return self._nodes.get(uid) == node and self._pods.get(uid) == pod

    def take(self, uid: str, node: NodeNow | None, pod: PodNow | None) -> None:
        if (old := self._nodes.pop(uid, None)) is not None:
            self._count_node(old, -1)
        if node is not None:
            self._nodes[uid] = node
            self._count_node(node, 1)
        if (was := self._pods.pop(uid, None)) is not None:
            self._count_pod(uid, was, -1)
        if pod is not None:
            self._pods[uid] = pod
            self._count_pod(uid, pod, 1)

    def _count_node(self, node: NodeNow, sign: int) -> None:
        self._there[node.name] += sign
        self._sizes[node.gpus] += sign
        self.gpus += sign * node.gpus
        self.serving += sign * self._serving_on[node.name]
        self.spot_nodes += sign * node.spot
        self.leaving_nodes += sign * node.leaving
        self.replicas += sign * self._replicas_on[node.name]
        self.replicas_on_spot += sign * node.spot * self._replicas_on[node.name]
        if node.price_per_hour is None:
            self.unpriced[node.name] += sign
        else:
            self.price_per_hour += sign * node.price_per_hour

    def _count_pod(self, uid: str, pod: PodNow, sign: int) -> None:
        """A pod counts as working only while its node is there: the API calls it Ready for a while after that."""
        self.held += sign * pod.gpus * bool(pod.node)
        self.waiting += sign * pod.gpus * pod.waiting
        if not pod.serving:
            return
        there, mine = bool(self._there[pod.node]), uid in self._workload
        self._serving_on[pod.node] += sign * pod.gpus
        self._replicas_on[pod.node] += sign * mine
        self.serving += sign * pod.gpus * there
        self.replicas += sign * mine * there
        on_spot = there and mine and any(n.spot for n in self._nodes.values() if n.name == pod.node)
        self.replicas_on_spot += sign * on_spot


def fleets(history: History, workload: Collection[str] = ()) -> Iterator[tuple[int, int, Fleet]]:
    """Spans [start, end) of the load, each with the fleet that held during it: one object, changed in place."""
    run = history.run
    fleet = Fleet(workload)
    since = run.load_start_ns
    for t_ns, life, event in changes([*lives(history.objects, "Node"), *lives(history.objects, "Pod")]):
        obj = event.object if event is not None else None
        node = _node(obj, run.prices_per_hour) if obj is not None and life.kind == "Node" else None
        pod = _pod(obj) if obj is not None and life.kind == "Pod" else None
        if fleet.holds(life.uid, node, pod):
            continue  # most versions say nothing new of GPUs
        until = min(t_ns, run.load_end_ns)
        if until > since:
            yield since, until, fleet
            since = until
        fleet.take(life.uid, node, pod)
    if run.load_end_ns > since:
        yield since, run.load_end_ns, fleet


def changes(many: Sequence[Life]) -> Iterator[tuple[int, Life, ObjectEvent | None]]:
    """Every version of every life in the order of its recording; None when it is gone."""
    found = [
        (e.t_ns, e.index, life, e) for life in many for e in life.seen if life.gone is None or e.index < life.gone.index
    ]
    gone = [(life.gone.t_ns, life.gone.index, life) for life in many if life.gone is not None]
    merged: list[tuple[int, int, Life, ObjectEvent | None]] = [*found, *((t, i, life, None) for t, i, life in gone)]
    merged.sort(key=lambda change: change[:2])
    yield from ((t, life, event) for t, _, life, event in merged)


def capacity(node: Json) -> int:
    return int((node.get("status", {}).get("capacity") or {}).get(GPU, 0))


def bought(node: Json) -> int:
    """GPUs that are paid for, also before the device plugin has shown them."""
    return max(int(labels_of(node).get(_GPU_COUNT) or 0), capacity(node), allocatable(node))


def price_of(node: Json, prices: dict[str, float]) -> float | None:
    labels = labels_of(node)
    return next((prices[labels[key]] for key in (POOL, INSTANCE_TYPE) if labels.get(key) in prices), None)


def is_spot(node: Json) -> bool:
    return labels_of(node).get(CAPACITY_TYPE) == "spot"


def _node(node: Json, prices: dict[str, float]) -> NodeNow | None:
    gpus = bought(node)
    name = name_of(node)
    usable = allocatable(node) if ready(node) else 0
    leaving = going(node) or disrupted(node)
    return NodeNow(name, gpus, usable, is_spot(node), leaving, price_of(node, prices)) if gpus else None


def _pod(pod: Json) -> PodNow | None:
    gpus = gpus_of(pod)
    if not gpus or terminal(pod):
        return None
    node = node_of(pod)
    name = name_of(pod)
    return PodNow(name, node, gpus, bool(node) and working(pod), without_room(pod))


def working(pod: Json) -> bool:
    """Ready; or running, where it has no Ready condition or nothing that would probe it."""
    if ready(pod):
        return True
    probed = any("readinessProbe" in c for c in pod.get("spec", {}).get("containers") or ())
    return not probed and running(pod)
