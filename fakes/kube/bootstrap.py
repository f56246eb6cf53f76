"""What a fresh cluster holds before anybody has written to it, and what every namespace is born with."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from fakes.clock import WallClock
from harness.kube import port
from harness.kube.port import Json, Resource

NAMESPACES = ("default", "kube-system", "kube-node-lease", "kube-public")

SYSTEM_PRIORITIES = {
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
}


def new_uid(rng: Random) -> str:
    """A UUID of version 4."""
    bits = rng.getrandbits(128) & ~(0xF << 76 | 0x3 << 62) | 4 << 76 | 2 << 62
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


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
        yield from furniture(wall, rng, name)
    for name, (value, description) in SYSTEM_PRIORITIES.items():
        yield (
            port.PRIORITY_CLASS,
            {
                "kind": "PriorityClass",
                "apiVersion": "scheduling.k8s.io/v1",
                "metadata": meta(name) | {"generation": 1},
                "value": value,
                "description": description,
                "preemptionPolicy": "PreemptLowerPriority",
            },
        )


def furniture(wall: WallClock, rng: Random, namespace: str) -> Iterator[tuple[Resource, Json]]:
    """What every namespace is born with; on a real cluster two controllers see to it a moment later."""
    stamp = wall.stamp()
    yield (
        port.SERVICE_ACCOUNT,
        {
            "kind": "ServiceAccount",
            "apiVersion": "v1",
            "metadata": {
                "name": "default", "namespace": namespace, "uid": new_uid(rng), "creationTimestamp": stamp,
            },
        },
    )  # fmt: skip
    note = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as "
    note += "the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
    note += "Kubernetes clusters."
    yield (
        port.CONFIG_MAP,
        {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {
                "name": "kube-root-ca.crt", "namespace": namespace, "uid": new_uid(rng), "creationTimestamp": stamp,
                "annotations": {"kubernetes.io/description": note},
                "managedFields": [{
                    "manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": stamp,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {
                        "f:data": {".": {}, "f:ca.crt": {}},
                        "f:metadata": {"f:annotations": {".": {}, "f:kubernetes.io/description": {}}},
                    },
                }],
            },
            "data": {"ca.crt": "(the embedded Kubernetes API speaks HTTP and has no certificate authority)"},
        },
    )  # fmt: skip
