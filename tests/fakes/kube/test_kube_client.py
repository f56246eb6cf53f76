"""The official Python client, synchronous as Chaos Toolkit uses it, in a thread beside the server's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

from harness.kube import port

if TYPE_CHECKING:
    from conftest import Served

T = TypeVar("T")


@contextmanager
def api_client(served: Served) -> Iterator[Any]:
    api: Any = config.new_client_from_config(str(served.kubeconfig))
    try:
        yield api
    finally:
        api.close()


async def in_thread(served: Served, work: Callable[[Any], T]) -> T:
    def run() -> T:
        with api_client(served) as api:
            return work(api)

    return await asyncio.to_thread(run)


def pod(name: str, **meta: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "x:1"}]}
    return {"metadata": {"name": name, "labels": {"app": "llm"}, **meta}, "spec": spec}


async def test_pods_from_creation_to_eviction(served: Served) -> None:
    def work(api: Any) -> None:
        core = client.CoreV1Api(api)
        made = core.create_namespaced_pod("default", pod("p"))
        assert made.metadata.uid
        assert made.status.phase == "Pending"
        assert [p.metadata.name for p in core.list_pod_for_all_namespaces(label_selector="app=llm").items] == ["p"]
        core.patch_namespaced_pod("p", "default", {"metadata": {"labels": {"more": "1"}}})
        core.create_namespaced_pod_eviction("p", "default", client.V1Eviction(metadata=client.V1ObjectMeta(name="p")))
        with pytest.raises(ApiException) as missing:
            core.read_namespaced_pod("p", "default")
        assert missing.value.status == 404
        assert '"reason":"NotFound"' in missing.value.body

    await in_thread(served, work)


async def test_nodes_scale_and_versions(served: Served) -> None:
    await served.kube.create(port.NODE, {"metadata": {"name": "n1"}})

    def work(api: Any) -> None:
        core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
        core.patch_node("n1", {"spec": {"unschedulable": True}})
        assert core.read_node("n1").spec.unschedulable is True
        core.patch_node("n1", [{"op": "remove", "path": "/spec/unschedulable"}])
        assert core.read_node("n1").spec.unschedulable is None
        labels = {"app": "llm"}
        spec = {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod("x")["spec"]},
        }
        apps.create_namespaced_deployment("default", {"metadata": {"name": "llm"}, "spec": spec})
        apps.patch_namespaced_deployment_scale("llm", "default", {"spec": {"replicas": 3}})
        assert apps.read_namespaced_deployment("llm", "default").spec.replicas == 3
        apps.delete_namespaced_deployment(
            "llm", "default", body=client.V1DeleteOptions(propagation_policy="Background")
        )
        assert client.VersionApi(api).get_code().minor == "37"

    await in_thread(served, work)


async def test_watches_and_custom_objects(served: Served) -> None:
    claim = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "n1"}, "spec": {}}

    def work(api: Any) -> list[tuple[str, str]]:
        custom = client.CustomObjectsApi(api)
        custom.create_cluster_custom_object("karpenter.sh", "v1", "nodeclaims", claim)
        custom.patch_cluster_custom_object(
            "karpenter.sh", "v1", "nodeclaims", "n1", {"metadata": {"labels": {"a": "b"}}}
        )
        found = custom.get_cluster_custom_object("karpenter.sh", "v1", "nodeclaims", "n1")
        assert found["metadata"]["labels"] == {"a": "b"}
        core = client.CoreV1Api(api)
        core.create_namespaced_pod("default", pod("p"))
        seen = []
        for event in watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=5):
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "ADDED":
                core.delete_namespaced_pod("p", "default", grace_period_seconds=0)
            if event["type"] == "DELETED":
                return seen
        return seen

    assert await in_thread(served, work) == [("ADDED", "p"), ("MODIFIED", "p"), ("DELETED", "p")]


async def test_the_dynamic_client_finds_what_is_served(served: Served, tmp_path: Any) -> None:
    def work(api: Any) -> None:
        found = dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovery.json"))
        pods = found.resources.get(api_version="v1", kind="Pod")
        assert pods.get(namespace="default").items == []
        groups = found.resources.get(api_version="scheduling.k8s.io/v1beta1", kind="PodGroup")
        body = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
        groups.create(body=body, namespace="default")
        assert groups.get(name="g", namespace="default").spec.schedulingPolicy.gang.minCount == 2

    await in_thread(served, work)
