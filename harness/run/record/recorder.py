"""Records what the cluster did, from the API server's own watches, on the run's clock; judges nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

from harness.clock import NS_PER_S
from harness.errors import TargetError
from harness.history.tables import FAILED_MARK, SERVER_TIME_MARK, VERSION_MARK, WALL_CLOCK_MARK
from harness.history.writer import HistoryWriter
from harness.kube.port import (
    DEPLOYMENT,
    ENDPOINT_SLICE,
    EVENT,
    HPA,
    NODE,
    NODE_CLAIM,
    PDB,
    POD,
    POD_GROUP,
    REPLICA_SET,
    ApiError,
    Kube,
    Resource,
)
from harness.run.record.scrape import GatewayMetrics, HttpGatewayMetrics, RawApi, Scraper
from harness.run.record.state import LiveState
from harness.run.record.watch import Clock, ResourceWatch
from harness.targets.base import Connection

RECORDED: tuple[Resource, ...] = (
    POD, NODE, DEPLOYMENT, REPLICA_SET, HPA, PDB, ENDPOINT_SLICE, POD_GROUP, NODE_CLAIM, EVENT,
)  # fmt: skip
START_WITHIN_S = 10.0
_FLUSH_EVERY_S = 0.25
_VERSION_WITHIN_S = 2.0


def silent_s(bookmark_s: float) -> float:
    """How long a watch may say nothing. Bookmarks come by their period within a second either way (kubernetes v1.37,
    k8s.io/apiserver storage/cacher: once a minute); half a period more is for a machine that is busy."""
    return 1.5 * bookmark_s + 2.0


def wall_now() -> datetime:
    return datetime.now(UTC)


class Workload(Protocol):
    """The part of the experiment's workload that the recorder looks at more closely."""

    @property
    def namespace(self) -> str: ...
    @property
    def selector(self) -> str: ...


class Recorder:
    """Objects of all namespaces, since capacity and drains are shared; numbers of the one workload.

    ``start`` returns when every resource was listed or is known to be absent; from then on ``state`` is live.
    ``stop`` ends the recording but leaves the writer open: others write into the same history after it.
    """

    def __init__(
        self,
        kube: Kube,
        clock: Clock,
        writer: HistoryWriter,
        connection: Connection | None,
        workload: Workload,
        *,
        more: Sequence[Resource] = (),
        raw_api: RawApi | None = None,
        gateway: GatewayMetrics | None = None,
        wall: Callable[[], datetime] = wall_now,
    ) -> None:
        """``more``: resources to record beside the usual ones. ``wall`` tells this machine's time of day, which is
        noted beside ``clock`` for comparison. ``raw_api`` defaults to ``kube`` where that has it, ``gateway`` to the
        connection's service over HTTP. Without either, nothing is scraped but the API."""
        self._clock, self._wall = clock, wall
        self._writer = writer
        self._raw_api = raw_api if raw_api is not None else _raw_api(kube)
        self.state = LiveState(workload.namespace, workload.selector)
        self._watches = [
            ResourceWatch(
                kube,
                resource,
                clock,
                writer.objects,
                self.state,
                self._absent,
                silent_s(connection.bookmark_s) if connection else None,
            )
            for resource in dict.fromkeys((*RECORDED, *more))
        ]
        self._scraper = Scraper(
            clock,
            writer.samples,
            self.state,
            self._mark,
            gateway=gateway or (HttpGatewayMetrics(connection.service_url) if connection else None),
            raw_api=self._raw_api,
            namespace=workload.namespace,
            selector=workload.selector,
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Raises ``TargetError`` when the cluster cannot be listed; ``stop`` must be called in that case, too."""
        runs = [*(watch.run() for watch in self._watches), self._flush(), self._scraper.run()]
        self._tasks = [asyncio.create_task(run) for run in runs]
        try:
            async with asyncio.timeout(START_WITHIN_S):
                for watch in self._watches:
                    await watch.known.wait()
        except TimeoutError:
            unknown = [watch for watch in self._watches if not watch.known.is_set()]
            names = ", ".join(watch.resource.plural for watch in unknown)
            raise TargetError(
                f"the recorder could not list {names} within {START_WITHIN_S:g} s: {unknown[0].error or 'no answer'}",
                hint="check that the API server is up and that the credentials may list and watch these resources",
            ) from None
        await self._note_clock_and_version()

    async def stop(self) -> None:
        """Idempotent."""
        if not self._tasks:
            return
        tasks, self._tasks = self._tasks, []
        await self._note_clock_and_version()
        await asyncio.gather(*(watch.confirm() for watch in self._watches))
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for watch in self._watches:
            watch.close()
        self._writer.flush()
        for result in results:
            if isinstance(result, Exception):
                self._mark(FAILED_MARK, type(result).__name__, str(result))

    async def _note_clock_and_version(self) -> None:
        """At the start and at the end: what ``clocks_agree`` and ``versions_known`` go by. A server that does not
        answer leaves no mark, which they notice."""
        self._mark(WALL_CLOCK_MARK, self._wall().astimezone(UTC).isoformat(timespec="microseconds"), "")
        if self._raw_api is None:
            return
        with contextlib.suppress(ApiError, TimeoutError, OSError):
            async with asyncio.timeout(_VERSION_WITHIN_S):
                if version := (await self._raw_api.raw("/version")).get("gitVersion"):
                    self._mark(VERSION_MARK, str(version), "")
                asked_ns = self._clock.now_ns()
                if (said := await self._raw_api.time_of_day()) is not None:
                    took_s = (self._clock.now_ns() - asked_ns) / NS_PER_S
                    self._mark(SERVER_TIME_MARK, said.astimezone(UTC).isoformat(), f"{took_s:.3f}")

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_EVERY_S)
            self._writer.flush()

    def _absent(self, resource: Resource) -> None:
        self._mark("resource_absent", resource.kind, f"{resource.api_version} {resource.plural} is not served")

    def _mark(self, name: str, value: str, detail: str) -> None:
        self._writer.mark(self._clock.now_ns(), name, value, detail)


def _raw_api(kube: Kube) -> RawApi | None:
    return kube if isinstance(kube, RawApi) else None
