"""Reads the gateway's own /metrics as Prometheus would: what there is to scale on while there is no replica to read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fakes.metrics.parse import parse
from fakes.metrics.scraper import STALE_S, Scrape
from fakes.timing import Timing

PREFIX = "gateway_"


class GatewayScraper:
    """``text`` is asked at each turn. The sum over the series of each metric is kept."""

    def __init__(self, timing: Timing, text: Callable[[], str]) -> None:
        self._timing = timing
        self._text = text
        self._wanted = asyncio.Event()
        self._newest: Scrape | None = None

    async def run(self) -> None:
        """Until somebody first asks for a value nothing is read."""
        await self._wanted.wait()
        while True:
            self._read()
            await asyncio.sleep(self._timing.clock_s(self._timing.durations.metrics_scrape_s))

    def _read(self) -> None:
        found: dict[str, float] = {}
        for sample in parse(self._text(), buckets=False):
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
        self._newest = Scrape(asyncio.get_running_loop().time(), found)

    def latest(self) -> Scrape | None:
        """The newest sample, unless it is too old to count."""
        if not self._wanted.is_set():
            self._wanted.set()
            self._read()
        age_s = 0.0 if self._newest is None else asyncio.get_running_loop().time() - self._newest.t_s
        return self._newest if age_s <= self._timing.clock_s(STALE_S) else None
