"""Writes down where real pods listen, for gateway and scraper: their own address, and the first port they declare.

Hollow pods say so themselves, since they listen elsewhere than their status claims.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from fakes.controllers.informer import Informer
from fakes.nodes.address import LISTEN_ANNOTATION
from harness.kube.port import POD, ApiError, EventType, Json, Kube

AGAIN_S = 1.0


class Announcer:
    """``run`` until cancelled. A pod without a port is left alone."""

    def __init__(self, kube: Kube, pods: Informer) -> None:
        self._kube = kube
        self._news: asyncio.Queue[Json] = asyncio.Queue()
        pods.on_change(self._look)

    def _look(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is not EventType.DELETED and listens_at(new) not in (None, _announced(new)):
            self._news.put_nowait(new)

    async def run(self) -> None:
        while True:
            pod = await self._news.get()
            meta, where = pod["metadata"], listens_at(pod)
            patch = {"metadata": {"uid": meta["uid"], "annotations": {LISTEN_ANNOTATION: where}}}
            try:
                with suppress(ApiError):  # another pod has its name by now, or none
                    await self._kube.patch(POD, meta["name"], patch, meta["namespace"])
            except ConnectionError:
                await asyncio.sleep(AGAIN_S)
                self._news.put_nowait(pod)


def listens_at(pod: Json) -> str | None:
    """ADDRESS:PORT; None before the pod has an address, and for one on its node's network or without a port."""
    address = (pod.get("status") or {}).get("podIP")
    ports = (port for container in pod["spec"]["containers"] for port in container.get("ports") or ())
    first = next(ports, None)
    if not address or first is None or pod["spec"].get("hostNetwork"):
        return None
    return f"{address}:{first['containerPort']}"


def _announced(pod: Json) -> str | None:
    return (pod["metadata"].get("annotations") or {}).get(LISTEN_ANNOTATION)
