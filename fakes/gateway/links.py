"""What lies between clients, gateway and pods: perfect by default, and slow, lossy or cut when a fault says so.

The same in front of sockets and of calls within the process, for a request passes a link as a whole: the time of a
round trip is put on the request's way, a lost request is never answered, a reset ends it at once wherever it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

CLIENTS = "clients"
PODS = "pods"


@dataclass(frozen=True, slots=True)
class Quality:
    """``latency_ms`` is of the clock: networks are not scaled."""

    latency_ms: float = 0.0
    loss_ratio: float = 0.0
    reset_ratio: float = 0.0


class LinkReset(ConnectionResetError):
    """The connection broke under the request. ``towards_client``: on the client's side of the gateway."""

    def __init__(self, *, towards_client: bool) -> None:
        super().__init__("Connection reset by peer")
        self.towards_client = towards_client


class Links:
    """Links by name: ``clients``, ``pods`` (all of them), ``node/NAME`` (the pods of one node)."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._quality: dict[str, Quality] = {}
        self._under_way: dict[asyncio.Task[object], tuple[str, ...]] = {}
        self._reset: set[asyncio.Task[object]] = set()

    def set(self, link: str, quality: Quality | None) -> None:
        """Of what is under way, the same share is lost or reset as of what comes."""
        if quality is None:
            self._quality.pop(link, None)
            return
        self._quality[link] = quality
        if quality.reset_ratio:
            self.reset(link, quality.reset_ratio)

    def reset(self, link: str, ratio: float = 1.0) -> None:
        for task, links in list(self._under_way.items()):
            if link in links and (ratio >= 1 or self._rng.random() < ratio) and task not in self._reset:
                self._reset.add(task)
                task.cancel()

    @asynccontextmanager
    async def passing(self, *links: str) -> AsyncIterator[None]:
        """A request under way on these links. Raises ``LinkReset``; a lost one waits until its client gives up."""
        task = asyncio.current_task()
        assert task is not None
        before = self._under_way.get(task, ())
        self._under_way[task] = (*before, *links)
        try:
            if self._quality:
                await self._meet([self._quality[link] for link in links if link in self._quality], CLIENTS in links)
            yield
        except asyncio.CancelledError:
            if task in self._reset:
                self._reset.discard(task)
                if task.uncancel() == 0:
                    raise LinkReset(towards_client=CLIENTS in links) from None
            raise
        finally:
            if before:
                self._under_way[task] = before
            else:
                self._under_way.pop(task, None)

    async def _meet(self, met: list[Quality], towards_client: bool) -> None:
        for quality in met:
            if quality.latency_ms:
                await asyncio.sleep(quality.latency_ms / 1000)
            if quality.loss_ratio and self._rng.random() < quality.loss_ratio:
                await asyncio.Event().wait()
            if quality.reset_ratio and self._rng.random() < quality.reset_ratio:
                raise LinkReset(towards_client=towards_client)
