"""What was seen of the cluster while a scenario ran: every version of every object that the scenario looks at."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from fakes.controllers.informer import Informer
from harness.kube.port import EventType, Json, Kube, Resource


@dataclass(frozen=True, slots=True)
class Seen:
    """``t_s``: seconds since the scenario began, on receipt."""

    t_s: float
    resource: Resource
    type: EventType
    object: Json


class Recorder:
    """Watches resources, each in one namespace where it has them. Nothing counts before ``begin``."""

    def __init__(self, kube: Kube, resources: Iterable[Resource], namespace: str) -> None:
        self._informers = []
        self._began_s: float | None = None
        self.seen: list[Seen] = []
        for resource in resources:
            informer = Informer(kube, resource, namespace if resource.namespaced else None)
            informer.on_change(self._listener(resource))
            self._informers.append(informer)

    def _listener(self, resource: Resource):  # type: ignore[no-untyped-def]  # a callback of the informer
        def changed(type: EventType, new: Json, old: Json | None) -> None:
            now_s = asyncio.get_running_loop().time()
            self.seen.append(Seen(0.0 if self._began_s is None else now_s - self._began_s, resource, type, new))

        return changed

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers:
                tasks.create_task(informer.run())

    async def synced(self) -> None:
        for informer in self._informers:
            await informer.synced()

    def begin(self) -> None:
        """What is there already counts as seen at 0."""
        self._began_s = asyncio.get_running_loop().time()
