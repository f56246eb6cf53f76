"""How a fault looks at what Kubernetes does not show: the service as clients meet it, the gateway's counters, and what
the autoscaler could read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

import httpx

from harness.errors import GuardRefused
from harness.faults.port import Ground
from harness.kube.port import ApiError, Json


@dataclass(frozen=True, slots=True)
class Answer:
    """``status`` is 0 where none came: ``error`` says why, ``reset``, ``refused`` or ``no answer``."""

    status: int
    took_s: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class MetricRead:
    """What the metrics API answered: values by pod, and their timestamps. ``status`` is that of HTTP."""

    status: int
    values: Mapping[str, str]
    stamps: Mapping[str, str]


class Senses(Protocol):
    async def ask(self, within_s: float) -> Answer:
        """One cheap request through the gateway to some replica. Never raises."""
        ...

    async def gateway_text(self) -> str | None:
        """The gateway's own metrics; None when it does not answer."""
        ...

    async def pod_metric(self, namespace: str, metric: str) -> MetricRead: ...


def senses_of(ground: Ground) -> Senses:
    if ground.senses is None:
        raise GuardRefused(
            f"target {ground.target} has no service that a fault could look at",
            hint="run it under the harness, which knows the service's address",
        )
    return ground.senses


def read_metric(status: int, body: Json) -> MetricRead:
    """From the answer of custom.metrics.k8s.io."""
    items = body.get("items") or ()
    by_pod = {str(item["describedObject"]["name"]): item for item in items}
    return MetricRead(
        status,
        {pod: str(item["value"]) for pod, item in by_pod.items()},
        {pod: str(item["timestamp"]) for pod, item in by_pod.items()},
    )


def metric_path(namespace: str, metric: str) -> str:
    return f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/*/{metric}"


class RawKube(Protocol):
    async def raw(self, path: str, query: Mapping[str, str] | None = None) -> Json: ...


class HttpSenses:
    """Over HTTP, at the service's address."""

    def __init__(self, service_url: str, kube: Callable[[], RawKube]) -> None:
        self._http = httpx.AsyncClient(base_url=service_url, trust_env=False)
        self._kube = kube

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def ask(self, within_s: float) -> Answer:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            answer = await self._http.get("/v1/models", timeout=within_s, headers={"connection": "close"})
        except httpx.TimeoutException:
            return Answer(0, loop.time() - began_s, "no answer")
        except httpx.ConnectError:
            return Answer(0, loop.time() - began_s, "refused")
        except httpx.HTTPError:
            return Answer(0, loop.time() - began_s, "reset")
        return Answer(answer.status_code, loop.time() - began_s)

    async def gateway_text(self) -> str | None:
        try:
            answer = await self._http.get("/metrics", timeout=2.0)
        except httpx.HTTPError:
            return None
        return answer.text if answer.is_success else None

    async def pod_metric(self, namespace: str, metric: str) -> MetricRead:
        try:
            return read_metric(200, await self._kube().raw(metric_path(namespace, metric)))
        except ApiError as error:
            return MetricRead(error.status, {}, {})
        except ConnectionError:
            return MetricRead(0, {}, {})
