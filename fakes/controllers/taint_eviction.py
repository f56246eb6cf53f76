"""Takes pods off nodes with NoExecute taints, each after the time that its tolerations grant."""

from __future__ import annotations

import asyncio

from fakes.clock import WallClock
from fakes.controllers.controller import Reconciler
from fakes.controllers.events import EventRecorder
from fakes.controllers.informer import Index, Informer, Key, key_of
from fakes.controllers.node_health import no_execute_taints, stays_s
from fakes.controllers.objects import (
    condition_of,
    is_terminal,
    is_terminating,
    name_of,
    namespace_of,
    node_of,
    uid_of,
    with_condition,
)
from fakes.timing import Timing
from harness.kube.port import POD, EventType, Json, Kube, NotFound, PatchType


class TaintEviction:
    """Shares the informers of the node lifecycle controller; ``run`` only works off what is due."""

    def __init__(
        self, kube: Kube, wall: WallClock, timing: Timing, nodes: Informer, pods: Informer, on_node: Index
    ) -> None:
        """``on_node``: the pods by the name of their node."""
        self._on_node = on_node
        self._kube = kube
        self._wall = wall
        self._timing = timing
        self._nodes = nodes
        self._pods = pods
        self._events = EventRecorder(kube, wall, "taint-eviction-controller")
        self._since: dict[str, float] = {}  # pod uid → loop time at which its node became intolerable
        self._loop: Reconciler[Key] = Reconciler(self._sync)
        nodes.on_change(self._node_changed)
        pods.on_change(self._pod_changed)

    async def run(self) -> None:
        await self._loop.run()

    def _node_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        before = no_execute_taints(old) if old is not None else []
        if type is EventType.DELETED or before == no_execute_taints(new):
            return
        for pod in self._on_node.get(name_of(new)):
            self._loop.queue.add(key_of(pod))

    def _pod_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is EventType.DELETED:
            self._since.pop(uid_of(new), None)
        elif node_of(new) and (old is None or node_of(old) != node_of(new)):
            self._loop.queue.add(key_of(new))

    async def _sync(self, key: Key) -> None:
        pod = self._pods.objects.get(key)
        if pod is None or is_terminating(pod) or is_terminal(pod):
            return
        node = self._nodes.objects.get(("", node_of(pod)))
        taints = no_execute_taints(node) if node is not None else []
        granted_s = stays_s(taints, pod["spec"].get("tolerations") or [])
        now_s = asyncio.get_running_loop().time()
        if not taints or granted_s is None:
            if self._since.pop(uid_of(pod), None) is not None:
                await self._events.normal(POD, pod, "TaintManagerEviction", f"Cancelling deletion of Pod {_full(pod)}")
            return
        due_s = self._since.setdefault(uid_of(pod), now_s) + self._timing.clock_s(granted_s)
        if now_s < due_s:
            self._loop.queue.add_after(key, due_s - now_s)
            return
        await self._evict(pod)

    async def _evict(self, pod: Json) -> None:
        await self._events.normal(POD, pod, "TaintManagerEviction", f"Marking for deletion Pod {_full(pod)}")
        why = "Taint manager: deleting due to NoExecute taint"
        patch = disruption_patch(pod, "DeletionByTaintManager", why, self._wall.stamp())
        try:
            await self._kube.patch(
                POD, name_of(pod), patch, namespace_of(pod), type=PatchType.STRATEGIC, subresource="status"
            )
            await self._kube.delete(POD, name_of(pod), namespace_of(pod), uid=uid_of(pod))
        except NotFound:
            self._since.pop(uid_of(pod), None)


def disruption_patch(pod: Json, reason: str, message: str, stamp: str | None) -> Json:
    """Says in the pod's conditions who is about to delete it; otherwise nobody could tell afterwards."""
    condition: Json = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "reason": reason,
        "message": message,
        "observedGeneration": int(pod["metadata"].get("generation") or 1),
    }
    if stamp is not None:
        known = condition_of(pod, "DisruptionTarget")
        condition = with_condition([known] if known else None, condition, stamp)[0]
    return {"status": {"conditions": [condition]}}


def _full(pod: Json) -> str:
    return f"{namespace_of(pod)}/{name_of(pod)}"
