"""A namespace that is being deleted: what goes when, and what is said of what holds it up."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from controller_cluster import NAMESPACE_NAME, Cluster, eventually, replica_set, running, template

from fakes.controllers.namespace import NamespaceController
from fakes.controllers.objects import condition_of, is_terminating
from fakes.controllers.replicaset import ReplicaSetController
from fakes.controllers.scheduler import Scheduler
from fakes.kube.kinds import CUSTOM_RESOURCE_DEFINITION
from fakes.timing import Timing
from harness.kube.port import CONFIG_MAP, NAMESPACE, POD, REPLICA_SET, SERVICE_ACCOUNT, Json, NotFound, Resource

pytestmark = pytest.mark.looptime
WIDGET = Resource("example.com", "v1", "widgets", "Widget", True)


def control(cluster: Cluster):
    return (
        NamespaceController(cluster.kube, cluster.wall).run(),
        ReplicaSetController(cluster.kube, cluster.wall, Random(1)).run(),
        Scheduler(cluster.kube, cluster.wall, Timing()).run(),
    )


async def conditions(cluster: Cluster) -> dict[str, tuple[Any, ...]]:
    found = (await cluster.kube.get(NAMESPACE, NAMESPACE_NAME))["status"].get("conditions") or []
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in found}


async def gone(cluster: Cluster) -> bool:
    try:
        await cluster.kube.get(NAMESPACE, NAMESPACE_NAME)
    except NotFound:
        return True
    return False


async def test_the_pods_go_first_and_nobody_makes_new_ones() -> None:
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await cluster.add_node("n1")
        await cluster.kube.create(REPLICA_SET, replica_set("llm", 2, template("llm")), NAMESPACE_NAME)

        async def up() -> bool:
            return len(await cluster.ready_pods()) == 2

        await eventually(up)
        began_s = asyncio.get_running_loop().time()
        await cluster.kube.delete(NAMESPACE, NAMESPACE_NAME)
        await asyncio.sleep(4.9)
        assert not any(is_terminating(p) for p in await cluster.pods()), "five seconds for who has not heard of it"
        await asyncio.sleep(0.2)
        assert all(is_terminating(p) for p in await cluster.pods())
        assert (await cluster.kube.list(SERVICE_ACCOUNT, NAMESPACE_NAME)).items, "all else waits for the pods"
        told = await conditions(cluster)
        assert told["NamespaceContentRemaining"][:2] == ("False", "ContentRemoved"), "as a real one says it, too"
        await eventually(lambda: gone(cluster), 60.0)
        assert asyncio.get_running_loop().time() - began_s < 30
        assert not (await cluster.kube.list(POD, NAMESPACE_NAME)).items


async def test_what_a_finalizer_holds_is_named() -> None:
    cluster = Cluster()
    definition: Json = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    async with running(cluster, *control(cluster)):
        kube = cluster.kube
        await kube.create(CUSTOM_RESOURCE_DEFINITION, definition)
        held = {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}
        await kube.create(CONFIG_MAP, held, NAMESPACE_NAME)
        await kube.create(WIDGET, held | {"apiVersion": "example.com/v1", "kind": "Widget"}, NAMESPACE_NAME)
        await kube.create(CONFIG_MAP, {"metadata": {"name": "free"}}, NAMESPACE_NAME)
        await kube.delete(NAMESPACE, NAMESPACE_NAME)
        await asyncio.sleep(5.5)
        assert [c["metadata"]["name"] for c in (await kube.list(CONFIG_MAP, NAMESPACE_NAME)).items] == ["a"]
        told = await conditions(cluster)
        assert told["NamespaceContentRemaining"] == (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances, "
            "widgets.example.com has 1 resource instances",
        )
        assert told["NamespaceFinalizersRemaining"] == (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances",
        )
        assert told["NamespaceDeletionContentFailure"][:2] == ("False", "ContentDeleted")
        for resource in (CONFIG_MAP, WIDGET):
            await kube.patch(resource, "a", {"metadata": {"finalizers": None}}, NAMESPACE_NAME)
        await eventually(lambda: gone(cluster), 10.0)


async def test_a_finalizer_of_the_namespace_itself_keeps_it() -> None:
    cluster = Cluster()
    async with running(cluster, *control(cluster)):
        await cluster.kube.patch(NAMESPACE, NAMESPACE_NAME, {"metadata": {"finalizers": ["example.com/hold"]}})
        await cluster.kube.delete(NAMESPACE, NAMESPACE_NAME)
        await asyncio.sleep(60.0)
        there = await cluster.kube.get(NAMESPACE, NAMESPACE_NAME)
        assert not there["spec"].get("finalizers"), "empty, as far as the controller goes"
        assert condition_of(there, "NamespaceContentRemaining") is not None
        await cluster.kube.patch(NAMESPACE, NAMESPACE_NAME, {"metadata": {"finalizers": None}})
        assert await gone(cluster)
