"""What a fresh cluster holds before anybody has written to it, and what every namespace is born with."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from uuid import UUID

from fakes.clock import WallClock
from harness.kube import port
from harness.kube.port import Json, Resource

NAMESPACES = ("default", "kube-system", "kube-node-lease", "kube-public")

SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def new_uid(rng: Random) -> str:
    return str(UUID(int=rng.getrandbits(128), version=4))


def first_objects(wall: WallClock, rng: Random) -> Iterator[tuple[Resource, Json]]:
    def meta(name: str, namespace: str | None = None) -> Json:
        found: Json = {"name": name, "uid": new_uid(rng), "creationTimestamp": wall.stamp()}
        return found | {"namespace": namespace} if namespace else found

    for name in NAMESPACES:
        yield (
            port.NAMESPACE,
            {
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": meta(name) | {"labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            },
        )
        yield port.SERVICE_ACCOUNT, default_account(meta("default", name))
    for name, value in SYSTEM_PRIORITIES.items():
        yield (
            port.PRIORITY_CLASS,
            {
                "kind": "PriorityClass",
                "apiVersion": "scheduling.k8s.io/v1",
                "metadata": meta(name) | {"generation": 1},
                "value": value,
                "preemptionPolicy": "PreemptLowerPriority",
            },
        )


def default_account(metadata: Json) -> Json:
    return {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": metadata}
