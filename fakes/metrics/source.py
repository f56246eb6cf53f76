"""Where a scrape's text comes from: a pod's HTTP port, or a model server in the same process."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

import aiohttp

from fakes.timing import Timing
from fakes.vllm.local_door import Switchboard

Address = tuple[str, int]
SCRAPE_TIMEOUT_S = 10.0


class ScrapeFailed(Exception):
    """No text, for whatever reason."""


class MetricsSource(Protocol):
    async def text(self, address: Address) -> str:
        """Raises ``ScrapeFailed``."""
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

    async def text(self, address: Address) -> str:
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

    async def text(self, address: Address) -> str:
        try:
            return self._switchboard.connect(address).metrics_text()
        except ConnectionRefusedError as error:
            raise ScrapeFailed(str(error)) from error
