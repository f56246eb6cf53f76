"""Many watches of one process are one watch of the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from random import Random

import pytest

from fakes.clock import WallClock
from fakes.controllers.informer import Informer
from fakes.kube.local import LocalKube
from fakes.kube.store import Store
from harness.kube.port import CONFIG_MAP, ForwardingKube, Gone, Json, Resource, WatchEvent
from harness.kube.shared_watches import SharedWatches, SharingKube

pytestmark = pytest.mark.looptime


class Counting(ForwardingKube):
    """Counts the watches of the server; ``cut`` ends those that are open."""

    opened = 0

    async def watch(
        self, resource: Resource, namespace: str | None = None, *, resource_version: str, label_selector: str = ""
    ) -> AsyncIterator[WatchEvent]:
        self.opened += 1
        self._cut: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        events = super().watch(resource, namespace, resource_version=resource_version, label_selector=label_selector)
        while True:
            following = asyncio.ensure_future(anext(events))
            await asyncio.wait({following, self._cut}, return_when=asyncio.FIRST_COMPLETED)
            if self._cut.done():
                following.cancel()
                raise Gone(410, "Expired", "too old resource version")
            yield following.result()

    def cut(self) -> None:
        self._cut.set_result(None)


def config_map(name: str, **data: str) -> Json:
    return {"metadata": {"name": name}, "data": data}


async def settle() -> None:
    await asyncio.sleep(0.1)


class Fixture:
    def __init__(self) -> None:
        self.server = LocalKube(Store(WallClock(datetime(2026, 1, 1, tzinfo=UTC)), Random(1)), "test")
        self.counting = Counting(self.server)
        self.kube = SharingKube(self.counting, SharedWatches(self.counting))
        self.tasks: list[asyncio.Task[None]] = []

    async def informer(self, namespace: str | None = None, selector: str = "") -> Informer:
        made = Informer(self.kube, CONFIG_MAP, namespace, selector)
        self.tasks.append(asyncio.create_task(made.run()))
        await made.synced()
        return made

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await settle()


def names(informer: Informer) -> set[str]:
    return {name for _, name in informer.objects if name != "kube-root-ca.crt"}


async def test_all_see_all_over_one_watch_also_who_comes_later():
    at = Fixture()
    first = await at.informer()
    await at.server.create(CONFIG_MAP, config_map("a"), "default")
    await settle()
    later, elsewhere = await at.informer("default"), await at.informer("nowhere")
    await at.server.create(CONFIG_MAP, config_map("b"), "default")
    await at.server.delete(CONFIG_MAP, "a", "default")
    await settle()
    assert (names(first), names(later), names(elsewhere)) == ({"b"}, {"b"}, set())
    assert at.counting.opened == 1
    await at.stop()


async def test_a_selector_has_a_watch_of_its_own():
    at = Fixture()
    await at.informer()
    chosen = await at.informer(selector="app=x")
    labelled = config_map("a")
    labelled["metadata"]["labels"] = {"app": "x"}
    await at.server.create(CONFIG_MAP, labelled, "default")
    await settle()
    assert names(chosen) == {"a"}
    assert at.counting.opened == 2
    await at.stop()


async def test_when_it_ends_it_ends_for_all_and_all_go_on():
    at = Fixture()
    first, second = await at.informer(), await at.informer()
    await settle()
    at.counting.cut()
    await settle()
    await at.server.create(CONFIG_MAP, config_map("after"), "default")
    await settle()
    assert (names(first), names(second)) == ({"after"}, {"after"})
    assert at.counting.opened == 2
    await at.stop()


async def test_whoever_leaves_leaves_the_others_and_the_last_ends_it():
    at = Fixture()
    first = await at.informer()
    await at.informer()
    await settle()
    at.tasks.pop().cancel()
    await settle()
    await at.server.create(CONFIG_MAP, config_map("a"), "default")
    await settle()
    assert names(first) == {"a"}
    await at.stop()
    again = await at.informer()
    await at.server.create(CONFIG_MAP, config_map("b"), "default")
    await settle()
    assert names(again) == {"a", "b"}
    assert at.counting.opened == 2
    await at.stop()


async def test_who_asks_for_what_is_no_longer_kept_watches_alone():
    at = Fixture()
    made = await at.server.create(CONFIG_MAP, config_map("a"), "default")
    await at.informer()
    await settle()
    events = at.kube.watch(CONFIG_MAP, resource_version=str(int(made["metadata"]["resourceVersion"]) - 1))
    assert (await anext(events)).object["metadata"]["name"] == "a"
    assert at.counting.opened == 2
    await events.aclose()
    await at.stop()
