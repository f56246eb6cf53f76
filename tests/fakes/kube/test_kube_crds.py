"""CRDs: served from the moment they are created, with subresources, columns and versions; gone with all they hold."""

from __future__ import annotations

from typing import Any

import pytest

from fakes.kube import LocalKube, Store
from fakes.kube.crds import RESOURCE
from fakes.kube.custom_columns import columns_of
from harness.kube.port import EventType, Invalid, Json, NotFound, Resource

pytestmark = pytest.mark.looptime
THING = Resource("example.com", "v1", "things", "Thing", True)
SECOND = Resource("example.com", "v2", "things", "Thing", True)
OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(**version: Any) -> Json:
    schema = {"openAPIV3Schema": OPEN}
    versions = [
        {"name": "v1", "served": True, "storage": True, "schema": schema, **version},
        {"name": "v2", "served": True, "storage": False, "schema": schema},
    ]
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": "things.example.com"}, "spec": spec}


async def test_served_at_once_in_every_version(store: Store, kube: LocalKube) -> None:
    with pytest.raises(NotFound):
        await kube.list(THING)
    await kube.create(RESOURCE, definition())
    made = await kube.create(THING, {"metadata": {"name": "a"}, "spec": {"size": 1}}, "default")
    assert (made["apiVersion"], made["metadata"]["generation"]) == ("example.com/v1", 1)
    crd = await kube.get(RESOURCE, "things.example.com")
    assert {c["type"]: c["status"] for c in crd["status"]["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert [o["metadata"]["name"] for o in (await kube.list(SECOND, "default")).items] == ["a"]


async def test_status_and_scale(store: Store, kube: LocalKube) -> None:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.sel"}
    await kube.create(RESOURCE, definition(subresources={"status": {}, "scale": scale}))
    made = await kube.create(THING, {"metadata": {"name": "a"}, "spec": {"size": 1}, "status": {"size": 9}}, "default")
    assert "status" not in made
    got = await kube.patch(
        THING, "a", {"spec": {"size": 7}, "status": {"size": 2, "sel": "a=b"}}, "default", subresource="status"
    )
    assert (got["spec"], got["status"]["size"]) == ({"size": 1}, 2)
    shown = await kube.patch(THING, "a", {"spec": {"replicas": 4}}, "default", subresource="scale")
    assert (shown["spec"], shown["status"]) == ({"replicas": 4}, {"replicas": 2, "selector": "a=b"})


async def test_gone_with_what_it_defined(store: Store, kube: LocalKube) -> None:
    await kube.create(RESOURCE, definition())
    await kube.create(THING, {"metadata": {"name": "a"}}, "default")
    watch = store.watch(THING, store.revision)
    await kube.delete(RESOURCE, "things.example.com")
    event = watch.poll()
    assert event is not None
    assert event[0] is EventType.DELETED
    with pytest.raises(NotFound):
        await kube.list(THING)
    await kube.create(RESOURCE, definition())
    assert (await kube.list(THING)).items == ()


async def test_a_definition_under_another_name_is_refused(kube: LocalKube) -> None:
    with pytest.raises(Invalid) as refused:
        await kube.create(RESOURCE, definition() | {"metadata": {"name": "others.example.com"}})
    assert refused.value.body["details"]["causes"][0]["field"] == "metadata.name"


async def test_columns_by_path(store: Store, kube: LocalKube) -> None:
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Note", "type": "string", "jsonPath": ".metadata.annotations.example\\.com/x", "priority": 1},
    ]
    await kube.create(RESOURCE, definition(additionalPrinterColumns=columns))
    kind = store.kinds.find(THING)
    assert kind is not None
    obj: Json = {
        "metadata": {"name": "a", "annotations": {"example.com/x": "y"}},
        "spec": {"size": 3},
        "status": {"conditions": [{"type": "Other", "status": "No"}, {"type": "Ready", "status": "True"}]},
    }
    shown = columns_of(kind)
    assert [c.cell(obj, store.wall.now()) for c in shown] == ["a", 3, "True", "y"]
    assert [c.wide for c in shown] == [False, False, False, True]
    assert shown[1].cell({"metadata": {"name": "b"}}, store.wall.now()) is None
