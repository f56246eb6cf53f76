"""Writes: what the server adds, what it keeps, what it refuses, and how things are deleted."""

from __future__ import annotations

from typing import Any

import pytest

from fakes.clock import parse_stamp
from fakes.kube import LocalKube, Store
from fakes.kube.api import Api, Write
from harness.kube import port
from harness.kube.port import Json, PatchType

pytestmark = pytest.mark.looptime

EVERYWHERE: Any = {"matchLabels": {"app": "llm"}}


def deployment(**spec: Any) -> Json:
    template = {"metadata": {"labels": {"app": "llm"}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    return {
        "metadata": {"name": "llm", "namespace": "default"},
        "spec": {"selector": EVERYWHERE, "template": template} | spec,
        "status": {"replicas": 99},
    }


def claim(**meta: Any) -> Json:
    return {"metadata": {"name": "n1", **meta}, "spec": {"requirements": []}}


async def test_a_new_object_gets_its_metadata(store: Store, kube: LocalKube) -> None:
    made = await kube.create(port.DEPLOYMENT, deployment())
    meta = made["metadata"]
    assert (made["kind"], made["apiVersion"]) == ("Deployment", "apps/v1")
    assert meta["creationTimestamp"] == store.wall.stamp()
    assert meta["generation"] == 1
    assert len(meta["uid"]) == 36
    assert [(e["manager"], e["operation"]) for e in meta["managedFields"]] == [("test", "Update")]
    assert made["status"] == {}, "status is not the writer's to set"
    assert made["spec"]["replicas"] == 1
    assert made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 30


async def test_generated_names(kube: LocalKube) -> None:
    made = [await kube.create(port.POD, pod(generateName="llm-", name=None)) for _ in range(3)]
    names = {p["metadata"]["name"] for p in made}
    assert len(names) == 3
    assert all(n.startswith("llm-") and len(n) == 9 for n in names)


def pod(name: str | None = "p", **meta: Any) -> Json:
    named = {"name": name} if name else {}
    return {
        "metadata": {"namespace": "default", **named, **meta},
        "spec": {"containers": [{"name": "c", "image": "x:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
    }


async def test_defaults_of_a_pod(kube: LocalKube) -> None:
    made = await kube.create(port.POD, pod())
    spec = made["spec"]
    assert (spec["terminationGracePeriodSeconds"], spec["restartPolicy"], spec["priority"]) == (30, "Always", 0)
    assert [(t["key"], t["tolerationSeconds"]) for t in spec["tolerations"]] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]
    assert spec["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": "1"}
    assert spec["volumes"][0]["name"].startswith("kube-api-access-")
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


async def test_priority_comes_from_the_class(kube: LocalKube) -> None:
    await kube.create(port.PRIORITY_CLASS, {"metadata": {"name": "gang"}, "value": 1000, "preemptionPolicy": "Never"})
    body = pod()
    body["spec"]["priorityClassName"] = "gang"
    made = await kube.create(port.POD, body)
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (1000, "Never")
    with pytest.raises(port.ApiError) as refused:
        await kube.create(port.POD, pod("q") | {"spec": body["spec"] | {"priorityClassName": "none"}})
    assert refused.value.status == 403


async def test_names_and_places_are_checked(kube: LocalKube) -> None:
    await kube.create(port.POD, pod())
    with pytest.raises(port.AlreadyExists):
        await kube.create(port.POD, pod())
    with pytest.raises(port.NotFound) as missing:
        await kube.create(port.POD, pod(namespace="nowhere"))
    assert missing.value.message == 'namespaces "nowhere" not found'
    with pytest.raises(port.Invalid) as other:
        await kube.create(port.POD, pod("q"), "kube-system")
    assert other.value.status == 400
    with pytest.raises(port.NotFound) as gone:
        await kube.get(port.DEPLOYMENT, "x", "default")
    assert gone.value.body["details"] == {"name": "x", "group": "apps", "kind": "deployments"}


async def test_generation_follows_the_spec_only(kube: LocalKube) -> None:
    await kube.create(port.DEPLOYMENT, deployment())
    steps: list[tuple[Json, str | None, int]] = [
        ({"status": {"replicas": 3}}, "status", 1),
        ({"metadata": {"labels": {"a": "b"}}}, None, 1),
        ({"metadata": {"annotations": {"a": "b"}}}, None, 2),  # a Deployment's own rule
        ({"spec": {"replicas": 5}}, None, 3),
        ({"spec": {"replicas": 5}}, None, 3),
    ]
    for patch, subresource, generation in steps:
        got = await kube.patch(port.DEPLOYMENT, "llm", patch, "default", subresource=subresource)
        assert got["metadata"]["generation"] == generation, patch


async def test_status_and_spec_have_their_own_doors(kube: LocalKube) -> None:
    made = await kube.create(port.DEPLOYMENT, deployment())
    changed = made | {"spec": made["spec"] | {"replicas": 9}, "status": {"replicas": 4}}
    by_status = await kube.update(port.DEPLOYMENT, changed, subresource="status")
    assert (by_status["spec"]["replicas"], by_status["status"]) == (1, {"replicas": 4})
    fresh = changed | {"metadata": by_status["metadata"], "status": {"replicas": 7}}
    by_main = await kube.update(port.DEPLOYMENT, fresh)
    assert (by_main["spec"]["replicas"], by_main["status"]) == (9, {"replicas": 4})
    with pytest.raises(port.NotFound):
        await kube.patch(port.CONFIG_MAP, "x", {}, "default", subresource="status")


async def test_a_kubelet_registers_its_node_with_a_status(kube: LocalKube) -> None:
    made = await kube.create(port.NODE, {"metadata": {"name": "n"}, "status": {"capacity": {"nvidia.com/gpu": "4"}}})
    assert made["status"]["capacity"] == {"nvidia.com/gpu": "4"}
    again = await kube.update(port.NODE, made | {"status": {"capacity": {}}})
    assert again["status"]["capacity"] == {"nvidia.com/gpu": "4"}


async def test_a_pods_status_update_may_annotate_it(kube: LocalKube) -> None:
    await kube.create(port.POD, pod())
    patch = {"metadata": {"annotations": {"listen": "127.0.0.1:1"}}, "status": {"phase": "Running"}}
    got = await kube.patch(port.POD, "p", patch, "default", subresource="status")
    assert (got["metadata"]["annotations"], got["status"]["phase"]) == ({"listen": "127.0.0.1:1"}, "Running")
    assert got["metadata"]["generation"] == 1


async def test_stale_writers_are_told(kube: LocalKube) -> None:
    made = await kube.create(port.DEPLOYMENT, deployment())
    await kube.patch(port.DEPLOYMENT, "llm", {"spec": {"replicas": 2}}, "default")
    with pytest.raises(port.Conflict) as stale:
        await kube.update(port.DEPLOYMENT, made | {"spec": made["spec"] | {"replicas": 3}})
    assert stale.value.message.startswith('Operation cannot be fulfilled on deployments.apps "llm"')
    with pytest.raises(port.Conflict):
        version = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "spec": {"replicas": 3}}
        await kube.patch(port.DEPLOYMENT, "llm", version, "default")
    unconditional = {k: v for k, v in made["metadata"].items() if k != "resourceVersion"}
    await kube.update(port.DEPLOYMENT, made | {"metadata": unconditional})


async def test_custom_resources_update_with_a_version_and_take_no_strategic_patch(kube: LocalKube) -> None:
    made = await kube.create(port.NODE_CLAIM, claim())
    with pytest.raises(port.Invalid) as refused:
        await kube.update(port.NODE_CLAIM, claim())
    assert "must be specified for an update" in refused.value.message
    await kube.update(port.NODE_CLAIM, made)
    with pytest.raises(port.ApiError) as unknown:
        await kube.patch(port.NODE_CLAIM, "n1", {}, type=PatchType.STRATEGIC)
    assert unknown.value.status == 415


async def test_a_dry_run_changes_nothing(store: Store) -> None:
    api, revision = Api(store), store.revision
    made = api.create(port.POD, "default", pod(), Write("t", dry_run=True))
    assert made.object["metadata"]["uid"]
    assert store.revision == revision
    with pytest.raises(port.NotFound):
        api.get(port.POD, "default", "p")


async def test_scale(kube: LocalKube) -> None:
    await kube.create(port.DEPLOYMENT, deployment())
    got = await kube.patch(port.DEPLOYMENT, "llm", {"spec": {"replicas": 6}}, "default", subresource="scale")
    assert (got["kind"], got["spec"], got["status"]["selector"]) == ("Scale", {"replicas": 6}, "app=llm")
    got["spec"]["replicas"] = 2
    got = await kube.update(port.DEPLOYMENT, got, subresource="scale")
    found = await kube.get(port.DEPLOYMENT, "llm", "default")
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (2, 3)
    with pytest.raises(port.Invalid):
        await kube.patch(port.DEPLOYMENT, "llm", {"spec": {"replicas": -1}}, "default", subresource="scale")
    with pytest.raises(port.NotFound):
        await kube.patch(port.POD, "p", {"spec": {"replicas": 1}}, "default", subresource="scale")


async def test_finalizers_hold_a_deleted_object(kube: LocalKube) -> None:
    await kube.create(port.NODE_CLAIM, claim(finalizers=["karpenter.sh/termination"]))
    await kube.delete(port.NODE_CLAIM, "n1")
    marked = await kube.get(port.NODE_CLAIM, "n1")
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["generation"] == 2
    with pytest.raises(port.Invalid):
        await kube.patch(port.NODE_CLAIM, "n1", {"metadata": {"finalizers": ["karpenter.sh/termination", "new"]}})
    await kube.patch(port.NODE_CLAIM, "n1", {"metadata": {"finalizers": []}})
    with pytest.raises(port.NotFound):
        await kube.get(port.NODE_CLAIM, "n1")


async def test_a_pod_that_runs_nowhere_goes_at_once(kube: LocalKube) -> None:
    await kube.create(port.POD, pod())
    await kube.delete(port.POD, "p", "default")
    with pytest.raises(port.NotFound):
        await kube.get(port.POD, "p", "default")


async def test_a_second_delete_only_shortens_the_grace(store: Store, kube: LocalKube) -> None:
    now = parse_stamp(store.wall.stamp())
    body = pod()
    body["spec"] |= {"nodeName": "n1", "terminationGracePeriodSeconds": 90}
    await kube.create(port.POD, body)
    since = (await kube.list(port.POD)).resource_version
    seen = []
    for grace_s in (None, 120, 10, 0):
        await kube.delete(port.POD, "p", "default", grace_s=grace_s)
    async for event in kube.watch(port.POD, resource_version=since):
        meta = event.object["metadata"]
        due_s = (parse_stamp(meta["deletionTimestamp"]) - now).total_seconds()
        seen.append((event.type.value, due_s, meta["deletionGracePeriodSeconds"]))
        if event.type is port.EventType.DELETED:
            break
    assert seen == [
        ("MODIFIED", 90, 90),
        ("MODIFIED", 10, 10),
        ("MODIFIED", 0, 0),
        ("DELETED", 0, 0),
    ]


async def test_delete_preconditions(kube: LocalKube) -> None:
    made = await kube.create(port.POD, pod())
    with pytest.raises(port.Conflict):
        await kube.delete(port.POD, "p", "default", uid="another")
    await kube.delete(port.POD, "p", "default", uid=made["metadata"]["uid"])


async def test_a_namespace_that_is_deleted_takes_nothing_more_and_goes_when_it_is_finalized(kube: LocalKube) -> None:
    await kube.create(port.NAMESPACE, {"metadata": {"name": "inference"}})
    await kube.create(port.CONFIG_MAP, {"metadata": {"name": "c"}}, "inference")
    await kube.delete(port.NAMESPACE, "inference")
    there = await kube.get(port.NAMESPACE, "inference")
    assert (there["status"]["phase"], there["spec"]["finalizers"]) == ("Terminating", ["kubernetes"])
    with pytest.raises(port.ApiError) as refused:
        await kube.create(port.CONFIG_MAP, {"metadata": {"name": "d"}}, "inference")
    assert refused.value.status == 403
    assert "because it is being terminated" in refused.value.message
    assert (await kube.update(port.NAMESPACE, there | {"spec": {}}))["spec"]["finalizers"] == ["kubernetes"]
    there = await kube.get(port.NAMESPACE, "inference")
    await kube.update(port.NAMESPACE, there | {"spec": {}}, subresource="finalize")
    with pytest.raises(port.NotFound):
        await kube.get(port.NAMESPACE, "inference")


async def test_a_service_keeps_its_address(kube: LocalKube) -> None:
    made = await kube.create(port.SERVICE, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, "default")
    body = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"ports": [{"port": 81}]}}
    again = await kube.update(port.SERVICE, body)
    assert again["spec"]["clusterIP"] == made["spec"]["clusterIP"]


async def test_lists_select_by_label_and_field(kube: LocalKube) -> None:
    for name, node in (("a", "n1"), ("b", "n2"), ("c", "n1")):
        body = pod(name, labels={"app": "llm" if name != "c" else "other"})
        body["spec"]["nodeName"] = node
        await kube.create(port.POD, body)
    found = await kube.list(port.POD, label_selector="app=llm", field_selector="spec.nodeName=n1")
    assert [p["metadata"]["name"] for p in found.items] == ["a"]
