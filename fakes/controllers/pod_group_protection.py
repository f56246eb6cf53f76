"""A PodGroup that is deleted stays until no pod of it is at work any more.

The finalizer comes from admission, as in Kubernetes 1.37; this controller only takes it away.
"""

from __future__ import annotations

from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.gang import group_name
from fakes.controllers.informer import Informer, Key, key_of
from fakes.controllers.objects import is_terminal, is_terminating, name_of, namespace_of
from fakes.kube.admission import GROUP_PROTECTION
from harness.kube.port import POD, POD_GROUP, EventType, Json, Kube, NotFound


class PodGroupProtection:
    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._groups = Informer(kube, POD_GROUP)
        self._pods = Informer(kube, POD)
        self._at_work = self._pods.index(_group_at_work)
        self._loop: Reconciler[Key] = Reconciler(self._sync)
        self._groups.on_change(self._group_changed)
        self._pods.on_change(self._pod_changed)

    async def run(self) -> None:
        await run_controller((self._pods, self._groups), self._loop.run)

    def _group_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if is_terminating(new) and type is not EventType.DELETED:
            self._loop.queue.add(key_of(new))

    def _pod_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        name = group_name(new)
        if name is not None and (type is EventType.DELETED or is_terminal(new)):
            self._loop.queue.add((namespace_of(new), name))

    async def _sync(self, key: Key) -> None:
        group = self._groups.objects.get(key)
        if group is None or not is_terminating(group) or self._at_work.get(key):
            return
        finalizers = group["metadata"].get("finalizers") or []
        if GROUP_PROTECTION not in finalizers:
            return
        left = [f for f in finalizers if f != GROUP_PROTECTION]
        metadata = {"finalizers": left, "resourceVersion": group["metadata"]["resourceVersion"]}
        try:
            await self._kube.patch(POD_GROUP, name_of(group), {"metadata": metadata}, namespace_of(group))
        except NotFound:
            return


def _group_at_work(pod: Json) -> Key | None:
    name = group_name(pod)
    return None if name is None or is_terminal(pod) else (namespace_of(pod), name)
