"""How faults look at the service and its metrics in virtual time: by calls within the process."""

from __future__ import annotations

import asyncio

from fakes.gateway.local import LocalEntry
from fakes.metrics.custom_metrics import CustomMetrics
from harness.faults.senses import Answer, MetricRead, metric_path, read_metric

_NO_REQUEST = b"{}"
"""A body that every replica refuses at once: the way to it is all that is looked at."""


class LocalSenses:
    """``Senses`` of the embedded world."""

    def __init__(self, entry: LocalEntry, metrics: CustomMetrics) -> None:
        self._entry = entry
        self._metrics = metrics
        self._asked = 0

    async def ask(self, within_s: float) -> Answer:
        loop = asyncio.get_running_loop()
        began_s, client = loop.time(), Listener()
        self._asked += 1
        try:
            async with asyncio.timeout(within_s):
                await self._entry.chat(_NO_REQUEST, f"look-{self._asked}", client)
        except TimeoutError:
            return Answer(0, loop.time() - began_s, "no answer")
        except ConnectionResetError:
            return Answer(0, loop.time() - began_s, "reset")
        return Answer(client.status, loop.time() - began_s)

    async def gateway_text(self) -> str | None:
        return self._entry.metrics_text()

    async def pod_metric(self, namespace: str, metric: str) -> MetricRead:
        path = metric_path(namespace, metric).partition("/v1beta2/")[2]
        status, body = await self._metrics.v1beta2.handle(path, {})
        return read_metric(status, body)


class Listener:
    """A client that wants the status alone."""

    def __init__(self) -> None:
        self.status = 0

    def head(self, status: int, pod: str, node: str) -> None:
        self.status = status

    def body(self, body: bytes) -> None:
        return None

    def token(self) -> None:
        return None

    def last(self, finish: str, *, with_text: bool, usage: tuple[int, int] | None) -> None:
        return None

    def error(self, message: str, type: str, status: int) -> None:
        return None
