"""GPUs over time: what nodes have, what pods hold, who serves and who waits. One pass over pods and nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

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
    node_of,
    ready,
    terminal,
    unschedulable,
)
from harness.history.tables import ObjectEvent

if TYPE_CHECKING:
    from harness.history.reader import History

T = TypeVar("T")

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


@dataclass(slots=True)
class Fleet:
    """All nodes and pods of one moment, by uid."""

    nodes: dict[str, NodeNow] = field(default_factory=dict)
    pods: dict[str, PodNow] = field(default_factory=dict)

    @property
    def gpus(self) -> int:
        return sum(node.gpus for node in self.nodes.values())

    @property
    def serving(self) -> int:
        there = {node.name for node in self.nodes.values()}
        return sum(pod.gpus for pod in self.pods.values() if pod.serving and pod.node in there)

    @property
    def held(self) -> int:
        return sum(pod.gpus for pod in self.pods.values() if pod.node)

    @property
    def asked(self) -> int:
        """Held, and asked for by pods that found no room."""
        return self.held + sum(pod.gpus for pod in self.pods.values() if pod.waiting)


def fleets(history: History) -> Iterator[tuple[int, int, Fleet]]:
    """Spans [start, end) of the load, each with the fleet that held during it: one object, changed in place."""
    run = history.run
    fleet = Fleet()
    since = run.load_start_ns
    for t_ns, life, event in changes([*lives(history.objects, "Node"), *lives(history.objects, "Pod")]):
        obj = event.object if event is not None else None
        node = _node(obj, run.prices_per_hour) if obj is not None and life.kind == "Node" else None
        pod = _pod(obj) if obj is not None and life.kind == "Pod" else None
        if (fleet.nodes.get(life.uid), fleet.pods.get(life.uid)) == (node, pod):
            continue  # most versions say nothing new of GPUs
        until = min(t_ns, run.load_end_ns)
        if until > since:
            yield since, until, fleet
            since = until
        _set(fleet.nodes, life.uid, node)
        _set(fleet.pods, life.uid, pod)
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


def _set(known: dict[str, T], key: str, value: T | None) -> None:
    if value is None:
        known.pop(key, None)
    else:
        known[key] = value


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
    name = str(node.get("metadata", {}).get("name", ""))
    usable = allocatable(node) if ready(node) else 0
    leaving = going(node) or disrupted(node)
    return NodeNow(name, gpus, usable, is_spot(node), leaving, price_of(node, prices)) if gpus else None


def _pod(pod: Json) -> PodNow | None:
    gpus = gpus_of(pod)
    if not gpus or terminal(pod):
        return None
    node = node_of(pod)
    name = str(pod.get("metadata", {}).get("name", ""))
    return PodNow(name, node, gpus, bool(node) and working(pod), not node and unschedulable(pod))


def working(pod: Json) -> bool:
    """Ready; or running, where it has no Ready condition or nothing that would probe it."""
    if ready(pod):
        return True
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    probed = any("readinessProbe" in c for c in pod.get("spec", {}).get("containers") or ())
    return not probed and any("running" in (status.get("state") or {}) for status in statuses)
