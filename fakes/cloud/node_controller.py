"""The cloud's node controller: the Node of an instance that is gone is deleted.

The real one (cloud-provider's node lifecycle controller) asks the cloud about NotReady nodes each 5 s; this one is
told.
"""

from __future__ import annotations

from fakes.cloud.cloud import Cloud, Instance, InstanceState
from fakes.controllers.queue import WorkQueue
from harness.kube.port import NODE, ApiError, Kube, NotFound

RETRY_S = 1.0


class CloudNodeController:
    def __init__(self, kube: Kube, cloud: Cloud) -> None:
        self._kube = kube
        self._queue: WorkQueue[str] = WorkQueue()
        cloud.on_gone.append(self._gone)
        for instance in cloud.instances.values():
            if instance.state is InstanceState.TERMINATED:
                self._gone(instance)

    async def run(self) -> None:
        while True:
            name = await self._queue.get()
            try:
                await self._kube.delete(NODE, name)
            except NotFound:
                continue  # deleted by whoever drained it, or never registered
            except (ApiError, ConnectionError):
                self._queue.add_after(name, RETRY_S)

    def _gone(self, instance: Instance) -> None:
        self._queue.add(instance.node)
