"""Watches on the store: order, resumption, selection, the window and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from fakes.kube import LocalKube, Store
from harness.kube import port
from harness.kube.port import Json, WatchEvent

pytestmark = pytest.mark.looptime


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Json:
    return {"metadata": {"name": name, "namespace": "default", "labels": labels or {}}, "data": data}


async def take(kube: LocalKube, count: int, since: str, **selection: str) -> list[WatchEvent]:
    found: list[WatchEvent] = []
    async for event in kube.watch(port.CONFIG_MAP, "default", resource_version=since, **selection):
        found.append(event)
        if len(found) == count:
            return found
    return found


def shown(events: list[WatchEvent]) -> list[tuple[str, str]]:
    return [(e.type.value, e.object["metadata"]["name"]) for e in events]


async def test_every_change_is_seen_once_and_in_order(kube: LocalKube) -> None:
    since = (await kube.list(port.CONFIG_MAP)).resource_version
    watching = asyncio.create_task(take(kube, 4, since))
    await kube.create(port.CONFIG_MAP, config_map("a"))
    await kube.create(port.CONFIG_MAP, config_map("b"))
    await kube.patch(port.CONFIG_MAP, "a", {"data": {"k": "v"}}, "default")
    await kube.delete(port.CONFIG_MAP, "b", "default")
    events = await watching
    assert shown(events) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    versions = [int(e.object["metadata"]["resourceVersion"]) for e in events]
    assert versions == sorted(set(versions))


async def test_a_watch_resumes_after_the_version_it_names(kube: LocalKube) -> None:
    first = await kube.create(port.CONFIG_MAP, config_map("a"))
    await kube.create(port.CONFIG_MAP, config_map("b"))
    assert shown(await take(kube, 1, first["metadata"]["resourceVersion"])) == [("ADDED", "b")]


async def test_an_object_enters_and_leaves_a_selection(kube: LocalKube) -> None:
    since = (await kube.list(port.CONFIG_MAP)).resource_version
    await kube.create(port.CONFIG_MAP, config_map("a", {"app": "x"}))
    await kube.patch(port.CONFIG_MAP, "a", {"metadata": {"labels": {"app": "y"}}}, "default")
    await kube.patch(port.CONFIG_MAP, "a", {"data": {"unseen": "1"}}, "default")
    await kube.patch(port.CONFIG_MAP, "a", {"metadata": {"labels": {"app": "x"}}}, "default")
    events = await take(kube, 3, since, label_selector="app=x")
    assert shown(events) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]
    assert events[1].object["metadata"]["labels"] == {"app": "x"}, "the last state that was in the selection"
    assert int(events[1].object["metadata"]["resourceVersion"]) > int(events[0].object["metadata"]["resourceVersion"])


async def test_other_namespaces_are_not_seen(kube: LocalKube) -> None:
    since = (await kube.list(port.CONFIG_MAP)).resource_version
    await kube.create(port.CONFIG_MAP, {"metadata": {"name": "x"}}, "kube-system")
    await kube.create(port.CONFIG_MAP, config_map("a"))
    assert shown(await take(kube, 1, since)) == [("ADDED", "a")]


async def test_beyond_the_window_is_gone_within_it_is_not(kube_with_window: Callable[[int], LocalKube]) -> None:
    kube = kube_with_window(4)
    versions = [
        (await kube.create(port.CONFIG_MAP, config_map(f"c{i:02}")))["metadata"]["resourceVersion"] for i in range(20)
    ]
    with pytest.raises(port.Gone) as gone:
        await take(kube, 1, versions[0])
    assert (gone.value.status, gone.value.reason) == (410, "Expired")
    assert shown(await take(kube, 3, versions[-4])) == [("ADDED", f"c{i}") for i in (17, 18, 19)]


async def test_the_window_is_counted_per_resource(kube_with_window: Callable[[int], LocalKube]) -> None:
    kube = kube_with_window(4)
    since = (await kube.list(port.CONFIG_MAP)).resource_version
    for i in range(20):
        await kube.create(port.SERVICE_ACCOUNT, {"metadata": {"name": f"s{i}"}}, "default")
    await kube.create(port.CONFIG_MAP, config_map("a"))
    assert shown(await take(kube, 1, since)) == [("ADDED", "a")]


async def test_a_watcher_that_falls_behind_is_told_so(kube_with_window: Callable[[int], LocalKube]) -> None:
    kube = kube_with_window(4)
    since = (await kube.list(port.CONFIG_MAP)).resource_version
    await kube.create(port.CONFIG_MAP, config_map("first"))
    events = kube.watch(port.CONFIG_MAP, "default", resource_version=since)
    assert (await anext(events)).object["metadata"]["name"] == "first"
    for i in range(20):
        await kube.create(port.CONFIG_MAP, config_map(f"c{i}"))
    with pytest.raises(port.Gone):
        await anext(events)


async def test_a_closed_watch_ends_even_while_it_waits(store: Store) -> None:
    watch = store.watch(port.POD, store.revision)
    waiting = asyncio.create_task(watch.next())
    await asyncio.sleep(0)
    watch.close()
    with pytest.raises(port.WatchClosed):
        await waiting


async def test_a_write_that_says_nothing_new_is_no_revision(kube: LocalKube) -> None:
    made = await kube.create(port.CONFIG_MAP, config_map("a", k="v"))
    assert await kube.patch(port.CONFIG_MAP, "a", {"data": {"k": "v"}}, "default") == made
    assert await kube.update(port.CONFIG_MAP, made) == made


async def test_a_version_from_the_future_is_refused(kube: LocalKube) -> None:
    with pytest.raises(port.ApiError) as refused:
        await take(kube, 1, "999999")
    assert refused.value.status == 504
    assert "Too large resource version" in refused.value.message


async def test_writing_into_a_handed_out_object_is_found(store: Store, kube: LocalKube) -> None:
    made = await kube.create(port.CONFIG_MAP, config_map("a"))
    store.find(port.CONFIG_MAP, "default", "a").data()  # type: ignore[union-attr]  # it was made just now
    made["metadata"]["labels"] = {"changed": "in place"}
    assert store.tampered() == ["configmaps default/a"]


async def test_a_fresh_cluster(kube: LocalKube) -> None:
    namespaces = (await kube.list(port.NAMESPACE)).items
    assert {n["metadata"]["name"] for n in namespaces} >= {"default", "kube-system", "kube-node-lease"}
    assert all(n["status"]["phase"] == "Active" for n in namespaces)
