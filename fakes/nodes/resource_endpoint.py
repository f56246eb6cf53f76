"""A hollow kubelet's ``/metrics/resource`` over HTTPS, which a real metrics-server asks for CPU and memory.

The series are those of kubernetes v1.37 pkg/kubelet/metrics/collectors/resource_metrics.go. CPU is a counter of core
seconds, added up from what each container takes: a second of the clock is a second, whatever the ``time_scale``.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from aiohttp import web

from fakes.clock import WallClock, parse_stamp
from fakes.nodes.usage import ContainerUse

PATH = "/metrics/resource"
SAMPLE_S = 0.5
"""Clock seconds between two looks; what a model server says of itself is its share of the last second."""
NODE_MILLI = 100
NODE_BYTES = 2 * 1024**3
"""What a node takes beside its pods: kubelet, container runtime, the system."""

Ask = Callable[[], list[ContainerUse] | None]


@dataclass(slots=True)
class _Counter:
    running_since: str
    cpu_s: float = 0.0


class ResourceEndpoint:
    """``uses`` says what the containers of the node take now, or None while its kubelet answers nobody."""

    def __init__(self, uses: Ask, wall: WallClock) -> None:
        self._uses = uses
        self._wall = wall
        self._counters: dict[tuple[str, str, str], _Counter] = {}
        self._node_cpu_s = 0.0

    async def serve(self, bound: socket.socket, tls: ssl.SSLContext) -> None:
        """Until cancelled; then the port answers no more."""
        app = web.Application()
        app.router.add_get(PATH, self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await runner.setup()
        try:
            await web.SockSite(runner, bound, ssl_context=tls).start()
            await self._count()
        finally:
            await runner.cleanup()

    async def _count(self) -> None:
        loop = asyncio.get_running_loop()
        before_s = loop.time()
        while True:
            await asyncio.sleep(SAMPLE_S)
            now_s = loop.time()
            self.add(now_s - before_s)
            before_s = now_s

    def add(self, lasted_s: float) -> None:
        """So long all containers took what they take now. Those that are gone are forgotten, and one that was started
        again begins at 0."""
        uses = self._uses()
        if uses is None:
            return
        present = {(u.namespace, u.pod, u.container): u for u in uses}
        self._counters = {
            key: old if (old := self._counters.get(key)) and old.running_since == use.running_since
            else _Counter(use.running_since)
            for key, use in present.items()
        }  # fmt: skip
        for key, use in present.items():
            self._counters[key].cpu_s += lasted_s * use.cpu_milli / 1000
        self._node_cpu_s += lasted_s * (NODE_MILLI + sum(u.cpu_milli for u in uses)) / 1000

    def text(self, uses: Iterable[ContainerUse]) -> str:
        """As Prometheus reads it. A container of which nothing was added up yet is left out."""
        at_ms = round(self._wall.now().timestamp() * 1000)
        cpu, memory, start = [], [], []
        node_bytes = NODE_BYTES
        for use in uses:
            labels = {"container": use.container, "namespace": use.namespace, "pod": use.pod}
            counter = self._counters.get((use.namespace, use.pod, use.container))
            node_bytes += use.memory_bytes
            if counter is None or counter.running_since != use.running_since:
                continue
            cpu.append(_line("container_cpu_usage_seconds_total", labels, counter.cpu_s, at_ms))
            memory.append(_line("container_memory_working_set_bytes", labels, use.memory_bytes, at_ms))
            start.append(_line("container_start_time_seconds", labels, parse_stamp(use.running_since).timestamp()))
        node = [
            _line("node_cpu_usage_seconds_total", {}, self._node_cpu_s, at_ms),
            _line("node_memory_working_set_bytes", {}, node_bytes, at_ms),
        ]
        return "\n".join([*cpu, *memory, *start, *node, ""])

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        uses = self._uses()
        if uses is None:
            assert request.transport is not None, "an open request has one"
            request.transport.abort()
            return web.Response(status=503)
        return web.Response(text=self.text(uses))


def _line(name: str, labels: Mapping[str, str], value: float, at_ms: int | None = None) -> str:
    inside = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value:.6f}" + ("" if at_ms is None else f" {at_ms}")
