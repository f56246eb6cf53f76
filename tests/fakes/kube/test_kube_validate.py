"""Bodies that are refused: 422 with one cause per field, 400 where the shape is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from fakes.kube import LocalKube
from fakes.kube.codec import clone
from harness.kube import port
from harness.kube.port import Json, Resource

pytestmark = pytest.mark.looptime

CONTAINER = {"name": "c", "image": "x:1"}
POD: Json = {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]}}
DEPLOYMENT: Json = {
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": {"app": "llm"}},
        "template": {"metadata": {"labels": {"app": "llm"}}, "spec": {"containers": [CONTAINER]}},
    },
}


def changed(obj: Json, path: str, value: Any) -> Json:
    """A copy with ``value`` at the dotted path; None removes."""
    result: Json = clone(obj)
    *parents, last = path.split(".")
    at: Any = result
    for step in parents:
        at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})
    if value is None:
        at.pop(last)
    else:
        at[last] = value
    return result


@pytest.mark.parametrize(
    ("resource", "body", "field"),
    [
        (port.POD, changed(POD, "metadata.name", None), "metadata.name"),
        (port.POD, changed(POD, "metadata.name", "Not_A_Name"), "metadata.name"),
        (port.POD, changed(POD, "metadata.labels", {"a b": "c"}), "metadata.labels"),
        (port.POD, changed(POD, "spec.containers", []), "spec.containers"),
        (port.POD, changed(POD, "spec.containers", [CONTAINER, CONTAINER]), "spec.containers[1].name"),
        (port.POD, changed(POD, "spec.containers.0.image", None), "spec.containers[0].image"),
        (
            port.POD,
            changed(POD, "spec.containers.0.ports", [{"containerPort": 0}]),
            "spec.containers[0].ports[0].containerPort",
        ),
        (port.POD, changed(POD, "spec.restartPolicy", "Sometimes"), "spec.restartPolicy"),
        (
            port.POD,
            changed(POD, "spec.containers.0.resources", {"requests": {"nvidia.com/gpu": "1"}}),
            "spec.containers[0].resources.limits",
        ),
        (port.DEPLOYMENT, changed(DEPLOYMENT, "spec.selector", None), "spec.selector"),
        (port.DEPLOYMENT, changed(DEPLOYMENT, "spec.selector", {}), "spec.selector"),
        (
            port.DEPLOYMENT,
            changed(DEPLOYMENT, "spec.template.metadata.labels", {"app": "other"}),
            "spec.template.metadata.labels",
        ),
        (port.DEPLOYMENT, changed(DEPLOYMENT, "spec.replicas", -1), "spec.replicas"),
        (port.PDB, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "maxUnavailable": 1}}, "spec"),
        (port.PDB, {"metadata": {"name": "b"}, "spec": {"maxUnavailable": "25"}}, "spec.maxUnavailable"),
        (
            port.HPA,
            {
                "metadata": {"name": "h"},
                "spec": {"maxReplicas": 1, "minReplicas": 2, "scaleTargetRef": {"kind": "D", "name": "d"}},
            },
            "spec.maxReplicas",
        ),
        (
            port.POD_GROUP,
            {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 0}}}},
            "spec.schedulingPolicy.gang.minCount",
        ),
        (port.SERVICE, {"metadata": {"name": "s"}, "spec": {}}, "spec.ports"),
        (
            port.NODE,
            {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "k", "effect": "Never"}]}},
            "metadata.taints[0].effect",
        ),
    ],
)
async def test_invalid_objects(kube: LocalKube, resource: Resource, body: Json, field: str) -> None:
    with pytest.raises(port.Invalid) as refused:
        await kube.create(resource, body, "default" if resource.namespaced else None)
    assert (refused.value.status, refused.value.reason) == (422, "Invalid")
    assert refused.value.body["details"]["causes"][0]["field"] == field
    assert refused.value.message.count("is invalid: ") == 1


@pytest.mark.parametrize(
    "body",
    [
        changed(POD, "spec", "a string"),
        changed(POD, "spec.containers", {"name": "c"}),
        changed(POD, "spec.containers", ["c"]),
        changed(POD, "metadata.labels", {"a": 1}),
        changed(POD, "spec.terminationGracePeriodSeconds", "30"),
        changed(POD, "kind", "Service"),
        changed(POD, "apiVersion", "v2"),
        changed(POD, "metadata.resourceVersion", "5"),
    ],
)
async def test_bodies_of_the_wrong_shape(kube: LocalKube, body: Json) -> None:
    with pytest.raises(port.Invalid) as refused:
        await kube.create(port.POD, body, "default")
    assert (refused.value.status, refused.value.reason) == (400, "BadRequest")


async def test_what_is_fixed_once_written(kube: LocalKube) -> None:
    await kube.create(port.DEPLOYMENT, DEPLOYMENT, "default")
    await kube.create(port.POD, POD, "default")
    await kube.create(port.NODE, {"metadata": {"name": "n"}, "spec": {"providerID": "fake://a/b"}})
    with pytest.raises(port.Invalid) as selector:
        both = {"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}}}
        await kube.patch(port.DEPLOYMENT, "d", {"spec": both}, "default")
    assert "field is immutable" in selector.value.message
    with pytest.raises(port.Invalid):
        await kube.patch(port.POD, "p", {"spec": {"hostNetwork": True}}, "default")
    with pytest.raises(port.Invalid):
        await kube.patch(port.NODE, "n", {"spec": {"providerID": "fake://a/c"}})
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "x:2"}]
    got = await kube.patch(port.POD, "p", image, "default", type=port.PatchType.JSON)
    assert got["metadata"]["generation"] == 2
