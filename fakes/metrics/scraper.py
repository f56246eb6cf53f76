"""Scrapes pods' /metrics as Prometheus would: each target on its own offset within the interval.

The offset, the interval and the time a scrape takes are what stands between a queue and the autoscaler that reads it. A
failed scrape marks what it knew of the pod stale at once.
"""

from __future__ import annotations

import asyncio
import logging
from functools import cache
from zlib import crc32

from fakes.controllers.informer import Informer
from fakes.metrics.source import Address, HttpSource, MetricsSource, ScrapeFailed
from fakes.nodes.address import listen_address
from fakes.timing import Timing
from harness.kube.port import POD, EventType, Json, Kube

log = logging.getLogger(__name__)

STALE_S = 300.0
"""Scenario seconds after which a sample no longer counts, as in Prometheus' look-back."""


@cache
def api_name(metric: str) -> str:
    """Kubernetes takes no colon in a metric's name."""
    return metric.replace(":", "_")


@cache
def _spellings(metric: str) -> tuple[str, ...]:
    """A name of the metrics API, and what it may have been before its colon was taken."""
    places = [i for i, letter in enumerate(metric) if letter == "_"]
    return (metric, *(f"{metric[:i]}:{metric[i + 1 :]}" for i in places))


class Scrape:
    """What a pod said at loop time ``t_s``: the sum over the series of each metric, by the pod's own names. Few scrapes
    are ever read, so names are translated when somebody asks."""

    __slots__ = ("_sums", "t_s")

    def __init__(self, t_s: float, sums: dict[str, float]) -> None:
        self.t_s = t_s
        self._sums = sums

    def value(self, metric: str) -> float | None:
        """By the name in the metrics API."""
        for name in _spellings(metric):
            if name in self._sums:
                return self._sums[name]
        return self.values.get(metric)

    @property
    def values(self) -> dict[str, float]:
        return {api_name(name): value for name, value in self._sums.items()}


class Scraper:
    """``source`` is where the numbers come from; HTTP if nothing else is said."""

    def __init__(
        self, kube: Kube, timing: Timing, namespace: str, selector: str, source: MetricsSource | None = None
    ) -> None:
        self.kube = kube
        self.timing = timing
        self._namespace = namespace
        self._interval_s = timing.clock_s(timing.durations.metrics_scrape_s)
        self._pods = Informer(kube, POD, namespace, selector)
        self._pods.on_change(self._changed)
        self._targets: dict[str, tuple[Address, asyncio.Task[None]]] = {}
        self._scrapes: dict[str, Scrape] = {}
        self.blank = False
        """Every scrape fails, and what was known is marked stale at once."""
        self.stands_still = False
        """No scrape is made; the newest samples age."""
        self.scrapes = 0
        """How many succeeded; the benchmarks count them."""
        self._source = source or HttpSource(timing)

    async def run(self) -> None:
        async with self._source:
            try:
                await self._pods.run()
            finally:
                for pod in list(self._targets):
                    self._forget(pod)

    def latest(self, namespace: str, pod: str) -> Scrape | None:
        """The newest successful scrape, unless it is too old to count."""
        scrape = self._scrapes.get(pod) if namespace == self._namespace and not self.blank else None
        if scrape is None:
            return None
        age_s = asyncio.get_running_loop().time() - scrape.t_s
        return scrape if age_s <= self.timing.clock_s(STALE_S) else None

    def names(self) -> list[str]:
        """All metrics seen on any pod, sorted."""
        return sorted({name for scrape in self._scrapes.values() for name in scrape.values})

    def _changed(self, type: EventType, pod: Json, old: Json | None) -> None:
        name = pod["metadata"]["name"]
        running = type is not EventType.DELETED and pod.get("status", {}).get("phase") == "Running"
        address = listen_address(pod) if running else None
        current = self._targets.get(name)
        if current is not None and current[0] != address:
            self._forget(name)
        if type is EventType.DELETED:
            self._scrapes.pop(name, None)
        if address is not None and name not in self._targets:
            task = asyncio.create_task(self._scrape_on(name, address), name=f"scrape {name}")
            self._targets[name] = (address, task)

    def _forget(self, pod: str) -> None:
        if (target := self._targets.pop(pod, None)) is not None:
            target[1].cancel()

    async def _scrape_on(self, pod: str, address: Address) -> None:
        loop = asyncio.get_running_loop()
        next_s = loop.time() + crc32(pod.encode()) / 2**32 * self._interval_s
        while True:
            await asyncio.sleep(max(0.0, next_s - loop.time()))
            await self._scrape(pod, address)
            next_s += self._interval_s
            if next_s < loop.time():  # scrapes missed in a stall are not made up for
                next_s = loop.time() + self._interval_s

    async def _scrape(self, pod: str, address: Address) -> None:
        if self.blank or self.stands_still:
            return
        t_s = asyncio.get_running_loop().time()
        try:
            sums = await self._source.sums(address)
        except ScrapeFailed as error:
            log.debug("scrape of %s: %s", pod, error)
            self._scrapes.pop(pod, None)
            return
        self._scrapes[pod] = Scrape(t_s, sums)
        self.scrapes += 1
