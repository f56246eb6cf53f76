"""Numbers of the run at a steady pace: the gateway's own metrics, and the autoscaler's metric as it could read it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Protocol, runtime_checkable

import httpx

from harness.history.writer import SamplesWriter
from harness.kube.port import ApiError, Json
from harness.run.record.exposition import parse_metrics, parse_quantity
from harness.run.record.state import LiveState
from harness.run.record.watch import Clock

WAITING_METRIC = "vllm_num_requests_waiting"
EVERY_S = 0.5
_GATEWAY_TIMEOUT_S = 1.0
_CUSTOM_METRICS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/*/{metric}"


@runtime_checkable
class RawApi(Protocol):
    """What is needed of the API server beyond objects: a GET of any path, and its time of day, in whole seconds.
    ``harness.kube.http`` has it."""

    async def raw(self, path: str, query: Mapping[str, str] | None = None) -> Json: ...

    async def time_of_day(self) -> datetime | None:
        """None where the server does not say."""
        ...


class GatewayMetrics(Protocol):
    """The text of the gateway's own ``/metrics``. ``close`` is called once, at the end."""

    async def text(self) -> str: ...

    async def close(self) -> None: ...


class HttpGatewayMetrics:
    def __init__(self, url: str) -> None:
        self._url = f"{url.rstrip('/')}/metrics"
        self._http = httpx.AsyncClient(timeout=_GATEWAY_TIMEOUT_S, trust_env=False)

    async def text(self) -> str:
        answer = await self._http.get(self._url)
        answer.raise_for_status()
        return answer.text

    async def close(self) -> None:
        await self._http.aclose()


class Scraper:
    """Runs until it is cancelled. A failing scrape leaves no sample, but a mark when that begins and when it ends."""

    def __init__(
        self,
        clock: Clock,
        samples: SamplesWriter,
        state: LiveState,
        mark: Callable[[str, str, str], None],
        *,
        gateway: GatewayMetrics | None,
        raw_api: RawApi | None,
        namespace: str,
        selector: str,
    ) -> None:
        """``mark`` takes name, value and detail."""
        self._clock = clock
        self._samples = samples
        self._state = state
        self._mark = mark
        self._gateway = gateway
        self._raw_api = raw_api
        self._path = _CUSTOM_METRICS.format(namespace=namespace, metric=WAITING_METRIC)
        self._query = {"labelSelector": selector}
        self._failing: set[str] = set()

    async def run(self) -> None:
        try:
            await self._run()
        finally:
            if self._gateway is not None:
                await self._gateway.close()

    async def _run(self) -> None:
        sources: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        if (gateway := self._gateway) is not None:
            sources.append(("gateway", lambda: self._gateway_metrics(gateway)))
        if (raw_api := self._raw_api) is not None:
            sources.append(("custom.metrics", lambda: self._custom_metrics(raw_api)))
        async with asyncio.TaskGroup() as reading:  # who hangs keeps nobody from the others
            for name, scrape in sources:
                reading.create_task(self._read_on(name, scrape), name=f"scrape {name}")

    async def _read_on(self, name: str, scrape: Callable[[], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        while True:
            await self._once(name, scrape)
            due_s = max(due_s + EVERY_S, loop.time())  # after a stall, go on; do not catch up
            await asyncio.sleep(due_s - loop.time())

    async def _once(self, source: str, scrape: Callable[[], Awaitable[None]]) -> None:
        try:
            await scrape()
        except (httpx.HTTPError, ConnectionError, ApiError, ValueError, KeyError, TypeError) as error:
            if source not in self._failing:
                self._failing.add(source)
                self._mark("scrape_failed", source, f"{type(error).__name__}: {error}")
        else:
            if source in self._failing:
                self._failing.discard(source)
                self._mark("scrape_recovered", source, "")

    async def _gateway_metrics(self, gateway: GatewayMetrics) -> None:
        text = await gateway.text()
        now_ns = self._clock.now_ns()
        for sample in list(parse_metrics(text)):
            self._samples.add(now_ns, "gateway", sample.name, sample.value, sample.labels)

    async def _custom_metrics(self, raw_api: RawApi) -> None:
        try:
            answer = await raw_api.raw(self._path, self._query)
        except ApiError as error:
            if error.status == 404:
                return  # no pod has a value that still counts: not known, which is no failure of the scrape
            raise
        now_ns = self._clock.now_ns()
        values = {item["describedObject"]["name"]: parse_quantity(item["value"]) for item in answer["items"]}
        for pod, value in values.items():
            self._samples.add(now_ns, "custom.metrics", WAITING_METRIC, value, {"pod": pod})
        self._state.waiting = sum(values.values())
