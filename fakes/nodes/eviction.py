"""What a kubelet does about pressure: a condition, and pods evicted one by one, the least deserving first.

Rules as of kubernetes v1.37 pkg/kubelet/eviction: pods that use more than they asked for, then low priority, then the
most above their request; the condition outlives the pressure by the transition period. A hollow node uses no memory:
the pressure is a fault that is switched on, and what a container uses is an annotation of its pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fakes.controllers.resources import amounts
from fakes.nodes.admission import CRITICAL_PRIORITY
from fakes.nodes.pod_status import EVICTED, Verdict
from fakes.nodes.pod_worker import PodWorker
from fakes.nodes.services import NodeServices
from fakes.nodes.usage import MEMORY_ANNOTATION, USED_MIB
from harness.kube.port import Json

USED_ANNOTATIONS = {
    "MemoryPressure": MEMORY_ANNOTATION,
    "DiskPressure": "gpu-harness.dev/disk-mib",
}
"""How much each container of a pod uses, in MiB."""
LOOP_S = 10
TRANSITION_S = 300
"""evictionPressureTransitionPeriod."""
GRACE_S = 1
"""Hard eviction's own grace; a pod's is not asked."""


@dataclass(frozen=True, slots=True)
class _Signal:
    resource: str
    threshold: str
    available: str
    between_s: float
    """Scenario seconds between two evictions."""


SIGNALS = {
    "MemoryPressure": _Signal("memory", "100Mi", "51200Ki", LOOP_S),
    "DiskPressure": _Signal("ephemeral-storage", "53687091200", "41943040Ki", 1.3),
}


class EvictionManager:
    """``changed`` is called when a condition of the Node's status has changed."""

    def __init__(
        self, node: NodeServices, workers: Callable[[], Iterable[PodWorker]], changed: Callable[[], None]
    ) -> None:
        self._node = node
        self._workers = workers
        self._changed = changed
        self._on: dict[str, int | None] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._began_s = asyncio.get_running_loop().time()

    def set(self, kind: str, on: bool, evictions: int | None = None) -> None:
        """``evictions``: how many pods it takes until the pressure is gone; None: it lasts until it is set off."""
        if kind not in SIGNALS:
            raise KeyError(f"no pressure {kind}; there are {', '.join(SIGNALS)}")
        if on:
            self._on[kind] = evictions
            if kind not in self._tasks or self._tasks[kind].done():
                self._tasks[kind] = asyncio.ensure_future(self._relieve(kind))
        else:
            self._on.pop(kind, None)

    def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    async def _relieve(self, kind: str) -> None:
        timing, signal = self._node.timing, SIGNALS[kind]
        period_s = timing.clock_s(LOOP_S)
        loop = asyncio.get_running_loop()
        await asyncio.sleep(period_s - (loop.time() - self._began_s) % period_s)
        if self._node.pressure.set(kind, True):
            self._changed()
        while kind in self._on:
            self._event("Warning", "EvictionThresholdMet", f"Attempting to reclaim {signal.resource}")
            if victim := choose(kind, [w for w in self._workers() if w.admitted and not w.is_over]):
                self._evict(kind, victim)
            await asyncio.sleep(timing.clock_s(signal.between_s))
        await asyncio.sleep(timing.clock_s(TRANSITION_S))
        if kind not in self._on and self._node.pressure.set(kind, False):
            self._changed()

    def _evict(self, kind: str, victim: PodWorker) -> None:
        message = eviction_message(kind, victim.pod)
        pod = {"apiVersion": "v1", "kind": "Pod", **victim.pod}
        self._node.events.event(pod, "Warning", EVICTED, message)
        victim.end(Verdict(EVICTED, message), GRACE_S)
        left = self._on[kind]
        if left is not None:
            self._on[kind] = left - 1
            if left <= 1:
                del self._on[kind]

    def _event(self, type: str, reason: str, message: str) -> None:
        name = self._node.machine.name
        reference = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name}}
        self._node.events.event(reference, type, reason, message)


def choose(kind: str, workers: Sequence[PodWorker]) -> PodWorker | None:
    """The pod to go next; critical ones never do."""
    found = [w for w in workers if _priority(w.pod) < CRITICAL_PRIORITY]
    return min(found, key=lambda w: _rank(kind, w.pod), default=None)


def eviction_message(kind: str, pod: Json) -> str:
    signal = SIGNALS[kind]
    said = f"The node was low on resource: {signal.resource}. "
    said += f"Threshold quantity: {signal.threshold}, available: {signal.available}. "
    for container in pod["spec"]["containers"]:
        used, asked = _used(kind, pod), _asked(kind, container)
        if used > asked:
            request = ((container.get("resources") or {}).get("requests") or {}).get(signal.resource, "0")
            said += f"Container {container['name']} was using {used // 1024}Ki, request is {request}, "
            said += f"has larger consumption of {signal.resource}. "
    return said


def _rank(kind: str, pod: Json) -> tuple[bool, int, int, str]:
    over = sum(_used(kind, pod) - _asked(kind, c) for c in pod["spec"]["containers"])
    return over <= 0, _priority(pod), -over, str(pod["metadata"]["name"])


def _priority(pod: Json) -> int:
    return int(pod["spec"].get("priority") or 0)


def _used(kind: str, pod: Json) -> int:
    annotations = pod["metadata"].get("annotations") or {}
    return int(annotations.get(USED_ANNOTATIONS[kind], USED_MIB)) * 1024 * 1024


def _asked(kind: str, container: Json) -> int:
    requests = (container.get("resources") or {}).get("requests") or {}
    return amounts(requests).get(SIGNALS[kind].resource, 0)
