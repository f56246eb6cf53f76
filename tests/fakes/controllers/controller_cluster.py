"""A small cluster for tests of controllers: the embedded store, the controllers under test, a double of the kubelet."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from random import Random
from typing import Any

from fakes.clock import WallClock
from fakes.controllers.informer import Informer
from fakes.controllers.objects import is_ready, is_terminating, node_of
from fakes.kube.local import LocalKube
from fakes.kube.store import Store
from harness.kube.port import (
    DEPLOYMENT,
    LEASE,
    NAMESPACE,
    NODE,
    POD,
    ApiError,
    EventType,
    Json,
    PatchType,
)

NAMESPACE_NAME = "inference"


def node(name: str, gpus: int = 4, *, taints: list[Json] | None = None, labels: dict[str, str] | None = None) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": taints} if taints else {},
        "status": {
            "allocatable": {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)},
            "conditions": [condition("Ready", "True")],
        },
    }


def condition(type: str, status: str, since: str = "2026-01-01T00:00:00Z", **more: Any) -> Json:
    return {"type": type, "status": status, "lastTransitionTime": since, **more}


def pod(name: str = "p", *, gpus: int = 1, **parts: Any) -> Json:
    """``parts``: node, phase, ready, ip, labels, deleted, owner, group, priority, created, spec."""
    metadata: Json = {
        "name": name,
        "namespace": NAMESPACE_NAME,
        "uid": f"uid-{name}",
        "labels": parts.get("labels", {"app": "llm"}),
        "creationTimestamp": parts.get("created", "2026-01-01T00:00:00Z"),
    }
    if parts.get("deleted"):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:30Z"
    if owner := parts.get("owner"):
        metadata["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}", "controller": True}]
    spec: Json = {"containers": [container(gpus)], **parts.get("spec", {})}
    if "node" in parts:
        spec["nodeName"] = parts["node"]
    if "group" in parts:
        spec["schedulingGroup"] = {"podGroupName": parts["group"]}
    if "priority" in parts:
        spec["priority"] = parts["priority"]
    status: Json = {"phase": parts.get("phase", "Running"), "conditions": []}
    if parts.get("ready") is not None:
        status["conditions"].append(condition("Ready", "True" if parts["ready"] else "False"))
    if "ip" in parts:
        status["podIP"] = parts["ip"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def container(gpus: int = 1) -> Json:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {"name": "c", "image": "vllm/vllm-openai:v0.32.0", "resources": {"limits": limits, "requests": limits}}


def template(app: str, gpus: int = 1, **spec: Any) -> Json:
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container(gpus)], **spec}}


def deployment(name: str = "llm", replicas: int = 4, **spec: Any) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE_NAME},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template(name),
            **spec,
        },
    }


def replica_set(name: str, replicas: int, pod_template: Json) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": NAMESPACE_NAME},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": pod_template["metadata"]["labels"]},
            "template": pod_template,
        },
    }


def pod_group(name: str, min_count: int) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE_NAME},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
    }


def pdb(name: str = "llm", **spec: Any) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": NAMESPACE_NAME},
        "spec": {"selector": {"matchLabels": {"app": "llm"}}, **spec},
    }


class StubKubelet:
    """Double of all kubelets: bound pods become Ready after ``start_s``, deleted ones are gone after ``stop_s``, and
    the nodes in ``alive`` renew their leases."""

    def __init__(self, kube: LocalKube, start_s: float = 1.0, stop_s: float = 1.0, renew_s: float = 1.0) -> None:
        self.kube = kube
        self.start_s, self.stop_s, self.renew_s = start_s, stop_s, renew_s
        self.alive: set[str] = set()
        self.hold_ready = False
        self._pods = Informer(kube, POD)
        self._pods.on_change(self._changed)
        self._started: set[str] = set()
        self._stopped: set[str] = set()
        self._count = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as self._tasks:
            self._tasks.create_task(self._pods.run())
            self._tasks.create_task(self._renew())

    def _changed(self, type: EventType, new: Json, old: Json | None) -> None:
        uid = new["metadata"]["uid"]
        if type is EventType.DELETED or node_of(new) not in self.alive:
            return
        if is_terminating(new) and uid not in self._stopped:
            self._stopped.add(uid)
            self._tasks.create_task(self._stop(new))
        elif node_of(new) and uid not in self._started:
            self._started.add(uid)
            self._tasks.create_task(self._start(new))

    async def _start(self, started: Json) -> None:
        self._count += 1
        ip = f"10.244.0.{self._count}"
        await asyncio.sleep(self.start_s)
        await until(lambda: not self.hold_ready, 3600)
        name = started["metadata"]["name"]
        current = self._pods.objects.get((NAMESPACE_NAME, name))
        if current is not None and not is_terminating(current) and node_of(current) in self.alive:
            await self.set_ready(name, True, {"phase": "Running", "podIP": ip})

    async def _stop(self, stopped: Json) -> None:
        await asyncio.sleep(self.stop_s)
        with contextlib.suppress(ApiError):
            await self.kube.delete(POD, stopped["metadata"]["name"], NAMESPACE_NAME, grace_s=0)

    async def set_ready(self, name: str, ready: bool, status: Json | None = None) -> None:
        conditions = [condition("Ready", "True" if ready else "False", "2026-01-01T00:00:00Z")]
        patch = {"status": {**(status or {}), "conditions": conditions}}
        await self.kube.patch(POD, name, patch, NAMESPACE_NAME, type=PatchType.STRATEGIC, subresource="status")

    async def _renew(self) -> None:
        serial = 0
        while True:
            serial += 1
            for name in sorted(self.alive):
                renewed = f"2026-01-01T00:00:00.{serial % 1_000_000:06}Z"
                lease = {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": name, "namespace": "kube-node-lease"},
                    "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed},
                }
                try:
                    await self.kube.patch(LEASE, name, {"spec": {"renewTime": renewed}}, "kube-node-lease")
                except ApiError:
                    await self.kube.create(LEASE, lease, "kube-node-lease")
            await asyncio.sleep(self.renew_s)


class Cluster:
    def __init__(self) -> None:
        self.wall = WallClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.store = Store(self.wall, Random("store"))
        self.kube = LocalKube(self.store, "kube-controller-manager")
        self.kubelet = StubKubelet(self.kube)

    async def add_node(self, name: str, gpus: int = 4, **parts: Any) -> None:
        await self.kube.create(NODE, node(name, gpus, **parts))
        self.kubelet.alive.add(name)

    async def pods(self, **labels: str) -> list[Json]:
        selector = ",".join(f"{k}={v}" for k, v in labels.items())
        return list((await self.kube.list(POD, NAMESPACE_NAME, label_selector=selector)).items)

    async def ready_pods(self, **labels: str) -> list[Json]:
        return [p for p in await self.pods(**labels) if is_ready(p) and not is_terminating(p)]

    async def scale(self, name: str, replicas: int) -> None:
        patch: Json = {"spec": {"replicas": replicas}}
        await self.kube.patch(DEPLOYMENT, name, patch, NAMESPACE_NAME, subresource="scale")


@contextlib.asynccontextmanager
async def running(cluster: Cluster, *parts: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """The parts and the kubelet run while the block does; a part that raises fails the test."""
    await cluster.kube.create(NAMESPACE, {"metadata": {"name": NAMESPACE_NAME}})
    async with asyncio.TaskGroup() as tasks:
        started = [tasks.create_task(part) for part in (cluster.kubelet.run(), *parts)]
        try:
            yield
        finally:
            for task in started:
                task.cancel()


async def until(predicate: Callable[[], bool], deadline_s: float = 30.0) -> None:
    """Waits in loop time for an observed fact."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + deadline_s
    while not predicate():
        assert loop.time() < end_s, "not seen before the deadline"
        await asyncio.sleep(0.01)


async def eventually(check: Callable[[], Awaitable[bool]], deadline_s: float = 30.0) -> None:
    loop = asyncio.get_running_loop()
    end_s = loop.time() + deadline_s
    while not await check():
        assert loop.time() < end_s, "not seen before the deadline"
        await asyncio.sleep(0.01)
