"""A planted bug: something that applies a workload's first size again and again, as a GitOps tool does whose manifest
still states replicas."""

from __future__ import annotations

import asyncio

from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.informer import Informer, Key, key_of
from fakes.timing import Timing
from harness.kube.port import DEPLOYMENT, EventType, Json, Kube, NotFound

SYNC_S = 20
"""Scenario seconds after which it notices that somebody else has written."""


class SecondWriter:
    def __init__(self, kube: Kube, timing: Timing) -> None:
        self._kube = kube
        self._timing = timing
        self._first: dict[Key, int] = {}
        self._deployments = Informer(kube, DEPLOYMENT)
        self._loop: Reconciler[Key] = Reconciler(self._apply)
        self._deployments.on_change(self._changed)

    async def run(self) -> None:
        await run_controller((self._deployments,), self._loop.run)

    def _changed(self, type: EventType, new: Json, old: Json | None) -> None:
        self._first.setdefault(key_of(new), _replicas(new))
        if _replicas(new) != self._first[key_of(new)]:
            self._loop.queue.add_after(key_of(new), self._timing.clock_s(SYNC_S))

    async def _apply(self, key: Key) -> None:
        await asyncio.sleep(0)
        found = self._deployments.objects.get(key)
        if found is None or _replicas(found) == self._first[key]:
            return
        try:
            await self._kube.patch(DEPLOYMENT, key[1], {"spec": {"replicas": self._first[key]}}, key[0])
        except NotFound:
            return


def _replicas(deployment: Json) -> int:
    return int(deployment["spec"].get("replicas", 1))
