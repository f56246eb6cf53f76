"""Reads each node's GPU exporter as Prometheus would, and keeps what it says of pods.

A pod's value of GPU_UTIL is the mean over its GPUs, of everything else the sum, as the rules that people give a
Prometheus adapter have it. A GPU that nobody holds is no pod's. A node that does not answer leaves its last samples
where they are, to age.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from zlib import crc32

from aiohttp import web

from fakes.metrics import dcgm
from fakes.metrics.scraper import STALE_S, Scrape
from fakes.nodes.gpus import Gpu
from fakes.timing import Timing


@dataclass(frozen=True, slots=True)
class GpuNode:
    """One node's exporter. ``gpus`` is asked at each scrape."""

    product: str
    gpus: Callable[[], list[Gpu]]


class GpuScraper:
    """``nodes`` is asked at each turn: nodes come and go."""

    def __init__(self, timing: Timing, nodes: Callable[[], Mapping[str, GpuNode]]) -> None:
        self._timing = timing
        self._nodes = nodes
        self._interval_s = timing.clock_s(timing.durations.metrics_scrape_s)
        self._wanted = asyncio.Event()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._by_node: dict[str, dict[tuple[str, str], Scrape]] = {}
        self._node_of: dict[tuple[str, str], str] = {}

    async def run(self) -> None:
        """Each node on an offset of its own within the interval, by its name. Until somebody first asks for a value
        nothing is read: a thousand exporters that nobody looks at would cost as much as the nodes themselves."""
        loop = asyncio.get_running_loop()
        await self._wanted.wait()
        try:
            while True:
                for name in self._nodes():
                    if name not in self._timers:
                        delay_s = crc32(name.encode()) / 2**32 * self._interval_s
                        self._timers[name] = loop.call_later(delay_s, self._scrape, name)
                await asyncio.sleep(self._interval_s)
        finally:
            for timer in self._timers.values():
                timer.cancel()

    def latest(self, namespace: str, pod: str) -> Scrape | None:
        """The newest sample of the pod's GPUs, unless it is too old to count."""
        if not self._wanted.is_set():
            self._wanted.set()
            for name, node in self._nodes().items():
                self._keep(name, node)
        scrape = self._by_node.get(self._node_of.get((namespace, pod), ""), {}).get((namespace, pod))
        if scrape is None:
            return None
        age_s = asyncio.get_running_loop().time() - scrape.t_s
        return scrape if age_s <= self._timing.clock_s(STALE_S) else None

    def names(self) -> list[str]:
        """The metrics that pods with GPUs have."""
        return sorted(dcgm.HELP) if self._nodes() else []

    def text(self, node: str) -> str | None:
        """What the node's exporter answers; None where there is no such node."""
        found = self._nodes().get(node)
        return None if found is None else dcgm.exposition(node, found.product, found.gpus())

    def app(self) -> web.Application:
        """Every node's exporter behind one port: GET /nodes/NODE/metrics."""

        async def metrics(request: web.Request) -> web.Response:
            text = self.text(request.match_info["node"])
            if text is None:
                return web.Response(status=404, text=f"no node {request.match_info['node']}\n")
            return web.Response(text=text, content_type="text/plain", charset="utf-8")

        app = web.Application()
        app.router.add_get("/nodes/{node}/metrics", metrics)
        return app

    def _scrape(self, name: str) -> None:
        node = self._nodes().get(name)
        if node is None:
            del self._timers[name]
            return
        self._timers[name] = asyncio.get_running_loop().call_later(self._interval_s, self._scrape, name)
        self._keep(name, node)

    def _keep(self, name: str, node: GpuNode) -> None:
        found = _by_pod(node.gpus(), node.product, asyncio.get_running_loop().time())
        for key in self._by_node.get(name, {}):
            if key not in found and self._node_of.get(key) == name:
                del self._node_of[key]
        self._by_node[name] = found
        self._node_of |= dict.fromkeys(found, name)


def _by_pod(gpus: list[Gpu], product: str, t_s: float) -> dict[tuple[str, str], Scrape]:
    held: dict[tuple[str, str], list[dict[str, int]]] = {}
    for gpu in gpus:
        if gpu.pod:
            held.setdefault((gpu.namespace, gpu.pod), []).append(dcgm.values(gpu, product))
    found: dict[tuple[str, str], Scrape] = {}
    for key, said in held.items():
        sums = {name: float(sum(one[name] for one in said)) for name in dcgm.HELP}
        sums[dcgm.UTIL] /= len(said)
        found[key] = Scrape(t_s, sums)
    return found
