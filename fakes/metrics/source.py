"""Where a scrape's numbers come from: a pod's HTTP port, or a model server in the same process."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

import aiohttp

from fakes.metrics.parse import BadExposition, parse
from fakes.timing import Timing
from fakes.vllm.local_door import MetricsFailed, Switchboard

Address = tuple[str, int]
SCRAPE_TIMEOUT_S = 10.0


class ScrapeFailed(Exception):
    """No numbers, for whatever reason."""


class MetricsSource(Protocol):
    async def sums(self, address: Address) -> dict[str, float]:
        """The sum over the series of each metric, without buckets. Raises ``ScrapeFailed``."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...


class HttpSource:
    def __init__(self, timing: Timing) -> None:
        self._timeout_s = timing.clock_s(SCRAPE_TIMEOUT_S)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._timeout_s))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def sums(self, address: Address) -> dict[str, float]:
        text = await self._text(address)
        found: dict[str, float] = {}
        try:
            for sample in parse(text, buckets=False):
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
        except BadExposition as error:
            raise ScrapeFailed(str(error)) from error
        return found

    async def _text(self, address: Address) -> str:
        assert self._session is not None
        try:
            async with self._session.get(f"http://{address[0]}:{address[1]}/metrics") as response:
                if response.status != 200:
                    raise ScrapeFailed(f"status {response.status}")
                return await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ScrapeFailed(str(error) or type(error).__name__) from error


class LocalSource:
    def __init__(self, switchboard: Switchboard) -> None:
        self._switchboard = switchboard

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        return None

    async def sums(self, address: Address) -> dict[str, float]:
        try:
            return self._switchboard.connect(address).metric_sums()
        except (ConnectionRefusedError, MetricsFailed) as error:
            raise ScrapeFailed(str(error)) from error
