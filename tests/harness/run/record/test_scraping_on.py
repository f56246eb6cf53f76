"""One source that hangs keeps the recorder from no other: what the other says then is how it is known to be there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pandas as pd
import pytest

from harness.clock import NS_PER_S
from harness.history.writer import SamplesWriter
from harness.kube.port import Json
from harness.run.record.scrape import Scraper
from harness.run.record.state import LiveState

pytestmark = pytest.mark.looptime


class LoopClock:
    def now_ns(self) -> int:
        return round(asyncio.get_running_loop().time() * NS_PER_S)


class HangingApi:
    async def raw(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        await asyncio.sleep(60)
        raise ConnectionError("timed out")

    async def time_of_day(self) -> datetime | None:
        return None


class Gateway:
    async def text(self) -> str:
        return "gateway_requests_in_flight 3\n"

    async def close(self) -> None:
        return None


async def test_the_gateway_is_read_on_while_the_metrics_api_hangs(tmp_path: Path) -> None:
    samples, marks = SamplesWriter(tmp_path / "samples.parquet"), []
    scraper = Scraper(
        LoopClock(), samples, LiveState("inference", "app=llm"), lambda *mark: marks.append(mark),
        gateway=Gateway(), raw_api=HangingApi(), namespace="inference", selector="app=llm",
    )  # fmt: skip
    running = asyncio.create_task(scraper.run())
    await asyncio.sleep(61)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    samples.close()
    read = pd.read_parquet(tmp_path / "samples.parquet")
    assert len(read[read["source"] == "gateway"]) >= 120
    assert [mark[:2] for mark in marks] == [("scrape_failed", "custom.metrics")]
