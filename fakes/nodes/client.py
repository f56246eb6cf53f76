"""The kubelet's connection to the API server: patient with a server that stumbles, silent once the power is off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from harness.kube.port import ApiError, Json, Kube, PatchType, Resource

T = TypeVar("T")
RETRY_S = 0.5
"""Clock seconds between tries, whatever the time scale: it is the real connection that is waited for."""


class NodeClient:
    """Writes of one node. Answers below 500, 429 apart, are the caller's business; anything else is tried again."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._cut = False
        self._reachable = asyncio.Event()
        self._reachable.set()

    def cut(self) -> None:
        """From here on no call reaches the server: it waits until its task is cancelled."""
        self._cut = True

    def hold(self) -> None:
        """No call reaches the server until ``release``: the network is cut, or the kubelet stands still."""
        self._reachable.clear()

    def release(self) -> None:
        self._reachable.set()

    async def create(self, resource: Resource, obj: Json, namespace: str | None = None) -> Json:
        return await self._patiently(lambda: self._kube.create(resource, obj, namespace))

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Json:
        return await self._patiently(lambda: self._kube.get(resource, name, namespace))

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Json,
        namespace: str | None = None,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str | None = None,
    ) -> Json:
        return await self._patiently(
            lambda: self._kube.patch(resource, name, patch, namespace, type=type, subresource=subresource)
        )

    async def delete_now(self, resource: Resource, name: str, namespace: str, uid: str) -> None:
        await self._patiently(lambda: self._kube.delete(resource, name, namespace, grace_s=0, uid=uid))

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            if self._cut:
                await asyncio.Event().wait()
            if not self._reachable.is_set():
                await self._reachable.wait()
            try:
                return await call()
            except ConnectionError:
                await asyncio.sleep(RETRY_S)
            except ApiError as error:
                if error.status < 500 and error.status != 429:
                    raise
                await asyncio.sleep(RETRY_S)
