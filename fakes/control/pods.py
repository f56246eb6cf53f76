"""Containers that a fault meddles with: they answer their probes wrongly, or end as soon as they have begun."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from typing import Protocol

from fakes.nodes.gpus import GpuUse
from fakes.nodes.runtime import Container
from fakes.timing import Spread, Timing
from fakes.vllm.container import VllmContainer
from harness.kube.port import Json

CRASH_CODE = 1


@dataclass(slots=True)
class PodTrouble:
    """By ``namespace/name``. ``load_factor``: how many times as long the model takes to download and to warm up."""

    unready: set[str] = field(default_factory=set)
    crashing: set[str] = field(default_factory=set)
    load_factor: float = 1.0
    frozen_nodes: set[str] = field(default_factory=set)
    servers: dict[str, MeddledContainer] = field(default_factory=dict)
    """Containers that serve: our model servers, and real processes."""
    metrics_fail: dict[str, str] = field(default_factory=dict)
    """How those of a pod fail: ``error``, or ``frozen``."""

    def slowed(self, timing: Timing) -> Timing:
        if self.load_factor == 1.0:
            return timing
        load = timing.durations.model_load
        slow = Spread(load.mean_s * self.load_factor, load.sd_s * self.load_factor)
        return replace(timing, durations=replace(timing.durations, model_load=slow))

    def crash(self, pod: str) -> None:
        """The process ends with an error, and so will each that follows, until it is told otherwise."""
        self.crashing.add(pod)
        if server := self.servers.get(pod):
            server.crash()

    def fail_metrics(self, pod: str, how: str | None) -> None:
        """Also of the servers that follow in the same pod."""
        if how is None:
            self.metrics_fail.pop(pod, None)
        else:
            self.metrics_fail[pod] = how
        if isinstance(server := self.servers.get(pod), MeddledServer):
            server.server.fail_metrics(how)

    @property
    def with_metrics(self) -> set[str]:
        """Pods whose metrics can be meddled with; those of a real process are its own."""
        return {name for name, server in self.servers.items() if isinstance(server, MeddledServer)}

    def freeze(self, node: str, frozen: bool) -> None:
        (self.frozen_nodes.add if frozen else self.frozen_nodes.discard)(node)
        for server in self.servers.values():
            if server.node == node:
                (server.inner.freeze if frozen else server.inner.thaw)()


class Freezable(Container, Protocol):
    """A container that can stand still with its machine: it answers nobody, keeps its connections, and goes on."""

    def freeze(self) -> None: ...

    def thaw(self) -> None: ...


class MeddledContainer:
    """A container that serves as its kubelet sees it, with the trouble of its pod."""

    def __init__(self, name: str, node: str, inner: Freezable, trouble: PodTrouble) -> None:
        self.name = name
        self.node = node
        self.inner = inner
        self._trouble = trouble
        self._crashed: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def address(self) -> tuple[str, int] | None:
        return self.inner.address

    def terminate(self) -> None:
        self.inner.terminate()

    def kill(self) -> None:
        self.inner.kill()

    def crash(self) -> None:
        if not self._crashed.done():
            self._crashed.set_result(CRASH_CODE)
            self.inner.kill()

    async def wait(self) -> int:
        code = await self.inner.wait()
        if self._trouble.servers.get(self.name) is self:
            del self._trouble.servers[self.name]
        return self._crashed.result() if self._crashed.done() else code

    def probe(self, path: str) -> int | Awaitable[int | None] | None:
        return 503 if self.name in self._trouble.unready else self.inner.probe(path)


class MeddledServer(MeddledContainer):
    """A model server of ours."""

    def __init__(self, name: str, node: str, server: VllmContainer, trouble: PodTrouble) -> None:
        super().__init__(name, node, server, trouble)
        self.server = server

    def gpu_use(self) -> GpuUse:
        return self.server.gpu_use()


def meddled(pod: Json, inner: Freezable, trouble: PodTrouble) -> Container:
    meta = pod["metadata"]
    name, node = f"{meta['namespace']}/{meta['name']}", str(pod["spec"].get("nodeName", ""))
    container: MeddledContainer
    if isinstance(inner, VllmContainer):
        container = MeddledServer(name, node, inner, trouble)
        if name in trouble.metrics_fail:
            inner.fail_metrics(trouble.metrics_fail[name])
    else:
        container = MeddledContainer(name, node, inner, trouble)
    trouble.servers[name] = container
    if name in trouble.crashing:
        container.crash()
    if node in trouble.frozen_nodes:
        inner.freeze()
    return container
