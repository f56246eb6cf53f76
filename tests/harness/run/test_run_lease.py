"""One run at a time: who comes second is told who holds the cluster; the dead hold nothing."""

from __future__ import annotations

import asyncio
import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fakes.clock import WallClock
from fakes.kube.local import LocalKube
from fakes.kube.store import Store
from harness.errors import GuardRefused
from harness.kube.port import LEASE, NAMESPACE, ApiError, Json, NotFound, Resource
from harness.run import lease as leases
from harness.run.lease import DURATION_S, LEASE_FILE, RunLease, give_back, give_back_of, holder_of, living_holder

NS = "inference"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ELSEWHERE = "another-host/7/1/reports/x"


class Setting:
    def __init__(self) -> None:
        self.store = Store(WallClock(NOW), Random(1))
        self.kube = LocalKube(self.store, "tests")
        self.now = NOW

    def lease(self, holder: str) -> RunLease:
        return RunLease(self.kube, NS, holder, utc_now=lambda: self.now)

    async def found(self) -> Json:
        return await self.kube.get(LEASE, leases.NAME, NS)


@pytest.fixture
async def setting() -> Setting:
    made = Setting()
    await made.kube.create(NAMESPACE, {"metadata": {"name": NS}})
    return made


async def test_the_second_is_refused_and_told_who_holds_it(setting: Setting) -> None:
    await setting.lease(ELSEWHERE).acquire()
    with pytest.raises(GuardRefused, match=r"another run is at work.*another-host/7/1/reports/x") as refused:
        await setting.lease("b-host/1/1/y").acquire()
    assert "kubectl delete lease" in (refused.value.hint or "")
    assert (await setting.found())["spec"]["holderIdentity"] == ELSEWHERE


async def test_given_back_it_is_free_and_only_the_holder_gives_it_back(setting: Setting) -> None:
    first, second = setting.lease(ELSEWHERE), setting.lease("b-host/1/1/y")
    await first.acquire()
    await second.release()
    assert (await setting.found())["spec"]["holderIdentity"] == ELSEWHERE
    await first.release()
    with pytest.raises(NotFound):
        await setting.found()
    await first.release()
    await second.acquire()


async def test_one_that_was_not_renewed_in_time_is_over(setting: Setting) -> None:
    await setting.lease(ELSEWHERE).acquire()
    setting.now = NOW + timedelta(seconds=DURATION_S - 1)
    with pytest.raises(GuardRefused):
        await setting.lease("b-host/1/1/y").acquire()
    setting.now = NOW + timedelta(seconds=DURATION_S + 1)
    await setting.lease("b-host/1/1/y").acquire()
    assert (await setting.found())["spec"]["holderIdentity"] == "b-host/1/1/y"


async def test_a_process_of_this_host_that_died_holds_nothing(setting: Setting) -> None:
    me, host = holder_of(Path("x")), socket.gethostname()
    pid = os.getpid()
    for dead in (f"{host}/{pid}/1/x", f"{host}/999999999/1/x"):
        await setting.lease(dead).acquire()
        await setting.lease(ELSEWHERE).acquire()
        await setting.lease(ELSEWHERE).release()
    await setting.lease(me).acquire()
    with pytest.raises(GuardRefused):
        await setting.lease(ELSEWHERE).acquire()


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": "x"}, {"holderIdentity": "x", "renewTime": None}])
async def test_one_that_says_nothing_of_its_time_holds_nothing(setting: Setting, spec: dict[str, Any]) -> None:
    await setting.kube.create(LEASE, {"metadata": {"name": leases.NAME, "namespace": NS}, "spec": spec}, NS)
    await setting.lease(ELSEWHERE).acquire()
    assert (await setting.found())["spec"]["holderIdentity"] == ELSEWHERE


@pytest.mark.looptime
async def test_it_is_kept_by_renewing_and_lost_to_whoever_takes_it(setting: Setting) -> None:
    lease = setting.lease(ELSEWHERE)
    await lease.acquire()
    keeping = asyncio.create_task(lease.keep())
    setting.now = NOW + timedelta(seconds=40)
    await asyncio.sleep(leases.RENEW_S + 1)
    assert (await setting.found())["spec"]["renewTime"].startswith("2026-01-01T00:00:40")
    found = await setting.found()
    await setting.kube.update(LEASE, found | {"spec": found["spec"] | {"holderIdentity": "thief"}})
    assert "thief" in await keeping


class Refusing(LocalKube):
    """Its next answers are these codes, and then its own."""

    codes: tuple[int, ...] = ()

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Json:
        if self.codes:
            code, *rest = self.codes
            self.codes = tuple(rest)
            raise ApiError(code, "Refused", "not now")
        return await super().get(resource, name, namespace)


@pytest.mark.looptime
async def test_a_server_without_a_leader_takes_no_lease_away_and_a_token_that_is_over_does(setting: Setting) -> None:
    setting.kube = refusing = Refusing(setting.store, "tests")
    lease = setting.lease(ELSEWHERE)
    await lease.acquire()
    refusing.codes = (500, 503, 429)
    keeping = asyncio.create_task(lease.keep())
    await asyncio.sleep(3 * leases.RENEW_S + 1)
    setting.now = NOW + timedelta(seconds=40)
    await asyncio.sleep(leases.RENEW_S)
    assert (await setting.found())["spec"]["renewTime"].startswith("2026-01-01T00:00:40")
    refusing.codes = (401,)
    assert "the lease could not be renewed: 401" in await keeping


async def test_what_a_dead_run_held_is_given_back_by_its_note_and_only_that(setting: Setting, tmp_path: Path) -> None:
    held = RunLease(setting.kube, NS, ELSEWHERE, run_dir=tmp_path)
    await held.acquire()
    await give_back(setting.kube, tmp_path)
    with pytest.raises(NotFound):
        await setting.found()
    assert not (tmp_path / LEASE_FILE).exists()
    await setting.lease("b-host/1/1/y").acquire()
    await give_back(setting.kube, tmp_path)
    assert (await setting.found())["spec"]["holderIdentity"] == "b-host/1/1/y"


async def test_a_run_that_was_refused_keeps_no_note(setting: Setting, tmp_path: Path) -> None:
    await setting.lease(ELSEWHERE).acquire()
    with pytest.raises(GuardRefused):
        await RunLease(setting.kube, NS, "b-host/1/1/y", utc_now=lambda: NOW, run_dir=tmp_path).acquire()
    assert list(tmp_path.iterdir()) == []


async def test_who_sweeps_from_the_cluster_sees_and_gives_back_what_the_run_of_a_folder_held(setting: Setting) -> None:
    async def held_by(folder: str) -> str | None:
        return await living_holder(setting.kube, NS, folder)

    assert await held_by("reports/x") is None
    await give_back_of(setting.kube, NS, "reports/x")  # there is nothing to give back
    setting.now = datetime(2999, 1, 1, tzinfo=UTC)
    await setting.lease(ELSEWHERE).acquire()
    assert ELSEWHERE in str(await held_by("reports/x"))
    assert await held_by("reports/xx") is None and await held_by("x-reports/x") is None
    await give_back_of(setting.kube, NS, "ports/x")
    assert (await setting.found())["spec"]["holderIdentity"] == ELSEWHERE, "it is of another folder"
    await give_back_of(setting.kube, NS, "reports/x")
    with pytest.raises(NotFound):
        await setting.found()
    setting.now = NOW
    await setting.lease(ELSEWHERE).acquire()
    assert await held_by("reports/x") is None, "it ran out long ago"
