"""Garbage, namespaces, the choice of pods to delete, and endpoints."""

from __future__ import annotations

from typing import Any

from bothsides.objects import deployment, pod, replica_set, service
from bothsides.stage import Explained, Scenario, Script, Stage

from harness.kube.port import (
    CONFIG_MAP,
    DEPLOYMENT,
    ENDPOINT_SLICE,
    EVENT,
    NAMESPACE,
    POD,
    REPLICA_SET,
    SERVICE,
    Json,
)

LOOKS = (DEPLOYMENT, REPLICA_SET, POD, CONFIG_MAP)


def deleting(propagation: str | None) -> Script:
    async def script(stage: Stage) -> None:
        await stage.create(DEPLOYMENT, deployment(replicas=2))
        await stage.at(5)
        await stage.delete(DEPLOYMENT, "web", propagation)
        await stage.at(12)

    return script


async def orphans_adopted(stage: Stage) -> None:
    await stage.create(REPLICA_SET, replica_set(replicas=2))
    await stage.at(5)
    await stage.delete(REPLICA_SET, "web", "Orphan")
    await stage.at(8)
    await stage.create(REPLICA_SET, replica_set(replicas=1))
    await stage.at(14)


def config_map(name: str, *owners: Json) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": list(owners)}}


def owner(uid: str, name: str, **more: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, **more}


async def dangling(stage: Stage) -> None:
    """One owner that never was, one that lives, and one that lives under another uid."""
    await stage.create(CONFIG_MAP, config_map("alive"))
    alive = await stage.kube.get(CONFIG_MAP, "alive", stage.namespace)
    here = owner(alive["metadata"]["uid"], "alive")
    never = owner("11111111-1111-4111-8111-111111111111", "never")
    other = owner("22222222-2222-4222-8222-222222222222", "alive")
    await stage.create(CONFIG_MAP, config_map("kept", here), config_map("lost", never), config_map("wrong-uid", other))
    await stage.create(CONFIG_MAP, config_map("half", here, never))
    await stage.at(5)
    await stage.delete(CONFIG_MAP, "alive")
    await stage.at(9)


async def foreground_chain(stage: Stage) -> None:
    """An owner waits only for those dependents that block it."""
    await stage.create(CONFIG_MAP, config_map("top"))
    top = (await stage.kube.get(CONFIG_MAP, "top", stage.namespace))["metadata"]["uid"]
    blocking = config_map("blocking", owner(top, "top", blockOwnerDeletion=True))
    blocking["metadata"]["finalizers"] = ["example.com/hold"]
    await stage.create(CONFIG_MAP, blocking, config_map("free", owner(top, "top")))
    await stage.at(2)
    await stage.delete(CONFIG_MAP, "top", "Foreground")
    await stage.at(6)
    await stage.patch(CONFIG_MAP, "blocking", {"metadata": {"finalizers": None}})
    await stage.at(10)


async def namespace_deleted(stage: Stage) -> None:
    await stage.create(DEPLOYMENT, deployment(replicas=1))
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await stage.create(CONFIG_MAP, held, config_map("plain"))
    await stage.at(5)
    await stage.delete(NAMESPACE, stage.namespace)
    await stage.at(6)
    await stage.ask("create in it", stage.kube.create(CONFIG_MAP, config_map("late"), stage.namespace))
    await stage.at(14)
    await stage.patch(CONFIG_MAP, "held", {"metadata": {"finalizers": None}})
    await stage.at(26)


async def cheapest_first(stage: Stage) -> None:
    """Unready before ready, then by pod-deletion-cost, then the youngest."""
    await stage.create(REPLICA_SET, replica_set(replicas=2))
    await stage.at(4)
    await stage.patch(REPLICA_SET, "web", {"spec": {"replicas": 4}})
    await stage.at(8)
    pods = await stage.pods(app="web")
    cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}}
    await stage.patch(POD, pods[0]["metadata"]["name"], cost)
    await stage.patch(POD, pods[1]["metadata"]["name"], {"metadata": {"labels": {"sick": stage.namespace}}})
    stage.health.sick.append({"sick": stage.namespace})
    await stage.at(12)
    await stage.patch(REPLICA_SET, "web", {"spec": {"replicas": 3}})
    await stage.at(16)
    await stage.patch(REPLICA_SET, "web", {"spec": {"replicas": 2}})
    await stage.at(20)


async def failed_pods(stage: Stage) -> None:
    """A pod that has ended for good is replaced, and stays until it is collected with its owner."""
    await stage.create(REPLICA_SET, replica_set(replicas=1))
    await stage.at(4)
    [only] = await stage.pods(app="web")
    await stage.patch(POD, only["metadata"]["name"], {"metadata": {"labels": {"app": "released"}}})
    await stage.at(8)


async def endpoints(stage: Stage) -> None:
    """Ready, unready, terminating, gone."""
    await stage.create(SERVICE, service(selector={"app": "web"}))
    await stage.at(1)
    await stage.create(POD, pod("steady"), pod("leaving"), pod("wavering", labels={"app": "web", "w": stage.namespace}))
    await stage.at(6)
    stage.health.sick.append({"w": stage.namespace})
    await stage.at(9)
    stage.health.sick.clear()
    await stage.at(12)
    await stage.delete(POD, "leaving")
    await stage.at(17)
    await stage.delete(SERVICE, "web")
    await stage.at(20)


async def published_unready(stage: Stage) -> None:
    await stage.create(SERVICE, service(selector={"app": "web"}, publishNotReadyAddresses=True, clusterIP="None"))
    await stage.create(POD, pod("never-ready", image="app:bad"), pod("leaving"))
    await stage.at(5)
    await stage.delete(POD, "leaving")
    await stage.at(10)


async def without_selector(stage: Stage) -> None:
    await stage.create(SERVICE, service("manual"))
    await stage.create(POD, pod("nobody"))
    await stage.at(4)


async def ports_by_name(stage: Stage) -> None:
    await stage.create(SERVICE, service(selector={"app": "web"}))
    await stage.create(POD, pod("named"))
    unnamed = pod("unnamed")
    del unnamed["spec"]["containers"][0]["ports"]
    await stage.create(POD, unnamed)
    await stage.at(5)


SLICES = (ENDPOINT_SLICE, POD)
LOST = (
    Explained(
        "Deployment web, co*", "a Deployment whose ReplicaSets are being orphaned may count them as lost before it goes"
    ),
)
SCENARIOS = (
    Scenario(
        "delete-background",
        "a Deployment is deleted in the background",
        deleting("Background"),
        looks=LOOKS,
        quick=True,
    ),
    Scenario("delete-foreground", "a Deployment is deleted in the foreground", deleting("Foreground"), looks=LOOKS),
    Scenario(
        "delete-orphan",
        "a Deployment is deleted, its ReplicaSet stays",
        deleting("Orphan"),
        looks=LOOKS,
        explained=LOST,
    ),
    Scenario("orphans-adopted", "orphaned pods are adopted by the next owner", orphans_adopted, looks=LOOKS),
    Scenario("dangling-owner", "owners that never were, or under another uid", dangling, looks=LOOKS),
    Scenario(
        "foreground-blocked", "a deletion in the foreground waits for who blocks it", foreground_chain, looks=LOOKS
    ),
    Scenario(
        "namespace-deleted",
        "a namespace and all that is in it",
        namespace_deleted,
        looks=(*LOOKS, NAMESPACE),
        within_s=8.0,
    ),
    Scenario("pods-to-delete", "which pods of a ReplicaSet go first", cheapest_first, looks=(REPLICA_SET, POD, EVENT)),
    Scenario("pod-released", "a pod whose labels change leaves its ReplicaSet", failed_pods, looks=(REPLICA_SET, POD)),
    Scenario("endpoints", "serving and terminating endpoints", endpoints, looks=SLICES),
    Scenario("endpoints-unready", "publishNotReadyAddresses", published_unready, looks=SLICES),
    Scenario("endpoints-manual", "a service without a selector has no slices", without_selector, looks=SLICES),
    Scenario("endpoints-named-port", "a pod that lacks a named port", ports_by_name, looks=SLICES),
)
