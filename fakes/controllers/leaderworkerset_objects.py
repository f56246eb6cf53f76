"""LeaderWorkerSet's names, and the StatefulSets, Services and pods it makes. Pure.

As of LWS v0.8 (sigs.k8s.io/lws): the leaders are one StatefulSet, named as the set; each leader pod owns a StatefulSet
of its workers, named as the leader pod, whose numbers start at 1. What LWS's pod webhook writes is in ``admitted``.
"""

from __future__ import annotations

import hashlib

from fakes.controllers.names import stable_hash
from fakes.controllers.objects import controller_reference, name_of, namespace_of
from harness.kube.port import LEADER_WORKER_SET, POD, Json

PREFIX = "leaderworkerset.sigs.k8s.io/"
NAME, GROUP_INDEX, WORKER_INDEX, GROUP_KEY, REVISION = (
    PREFIX + part for part in ("name", "group-index", "worker-index", "group-key", "template-revision-hash")
)
SIZE, LEADER_NAME = PREFIX + "size", PREFIX + "leader-name"
RECREATE = "RecreateGroupOnPodRestart"
LEADER_READY = "LeaderReady"


def size_of(lws: Json) -> int:
    """Pods in a group, the leader included."""
    return int(lws["spec"]["leaderWorkerTemplate"].get("size") or 1)


def replicas_of(lws: Json) -> int:
    """Groups."""
    return int(lws["spec"].get("replicas", 1))


def restarts_whole(lws: Json) -> bool:
    policy = lws["spec"]["leaderWorkerTemplate"].get("restartPolicy") or RECREATE
    return bool(policy in (RECREATE, "Default"))


def rolling_of(lws: Json) -> tuple[int | str, int]:
    """maxUnavailable and partition."""
    rolling = (lws["spec"].get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
    return rolling.get("maxUnavailable", 1), int(rolling.get("partition") or 0)


def revision_of(lws: Json) -> str:
    return stable_hash(lws["spec"]["leaderWorkerTemplate"])


def selector_of(lws: Json) -> str:
    """Leaders only: an autoscaler counts one pod a group."""
    return f"{NAME}={name_of(lws)},{WORKER_INDEX}=0"


def service(lws: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta(lws, name_of(lws), {}),
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {NAME: name_of(lws)}},
    }


def leader_set(lws: Json, partition: int, at_once: int) -> Json:
    template = lws["spec"]["leaderWorkerTemplate"]
    labels = {NAME: name_of(lws), WORKER_INDEX: "0", REVISION: revision_of(lws)}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": _meta(lws, name_of(lws), {REVISION: revision_of(lws)}),
        "spec": {
            "replicas": replicas_of(lws),
            "serviceName": name_of(lws),
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {NAME: name_of(lws), WORKER_INDEX: "0"}},
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"partition": partition, "maxUnavailable": at_once},
            },
            "template": _template(lws, template.get("leaderTemplate") or template["workerTemplate"], labels),
        },
    }


def worker_set(lws: Json, leader: Json) -> Json:
    """Of the leader pod, which owns it. Its template is that of the leader's own revision."""
    labels = {label: leader["metadata"]["labels"][label] for label in (NAME, GROUP_INDEX, GROUP_KEY, REVISION)}
    template = _template(lws, lws["spec"]["leaderWorkerTemplate"]["workerTemplate"], labels)
    template["metadata"]["annotations"][LEADER_NAME] = name_of(leader)
    meta = {
        "name": name_of(leader),
        "namespace": namespace_of(leader),
        "labels": labels,
        "ownerReferences": [controller_reference(POD, leader)],
    }
    chosen = {key: labels[key] for key in (NAME, GROUP_INDEX, GROUP_KEY)}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": meta,
        "spec": {
            "replicas": size_of(lws) - 1,
            "serviceName": name_of(lws),
            "podManagementPolicy": "Parallel",
            "ordinals": {"start": 1},
            "selector": {"matchLabels": chosen},
            "template": template,
        },
    }


def admitted(pod: Json) -> Json:
    """What the pod webhook makes of a pod: its place in its group, as labels and for its processes."""
    labels = pod["metadata"].get("labels") or {}
    if NAME not in labels:
        return pod
    annotations = pod["metadata"].get("annotations") or {}
    head, _, number = name_of(pod).rpartition("-")
    added: dict[str, str] = {}
    if labels.get(WORKER_INDEX) == "0":
        leader = name_of(pod)
        unique = f"{namespace_of(pod)}/{name_of(pod)}".encode()
        added = {GROUP_INDEX: number, GROUP_KEY: hashlib.sha1(unique, usedforsecurity=False).hexdigest()}
    else:
        leader = annotations.get(LEADER_NAME, head)
        added = {WORKER_INDEX: number}
    index = {**labels, **added}[WORKER_INDEX]
    address = f"{leader}.{labels[NAME]}.{namespace_of(pod)}"
    env = [
        {"name": "LWS_LEADER_ADDRESS", "value": address},
        {"name": "LWS_GROUP_SIZE", "value": annotations.get(SIZE, "1")},
        {"name": "LWS_WORKER_INDEX", "value": index},
    ]
    spec = dict(pod["spec"])
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [{**c, "env": [*env, *(c.get("env") or ())]} for c in spec[kind]]
    return {**pod, "metadata": {**pod["metadata"], "labels": {**labels, **added}}, "spec": spec}


def _template(lws: Json, template: Json, labels: dict[str, str]) -> Json:
    meta = template.get("metadata") or {}
    annotations = {**(meta.get("annotations") or {}), SIZE: str(size_of(lws))}
    return {
        "metadata": {"labels": {**(meta.get("labels") or {}), **labels}, "annotations": annotations},
        "spec": template["spec"],
    }


def _meta(lws: Json, name: str, labels: dict[str, str]) -> Json:
    return {
        "name": name,
        "namespace": namespace_of(lws),
        "labels": {NAME: name_of(lws), **labels},
        "ownerReferences": [controller_reference(LEADER_WORKER_SET, lws)],
    }
