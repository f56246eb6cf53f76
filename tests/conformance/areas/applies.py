"""Server-side apply and managedFields: who owns what, conflicts, what goes when it is no longer applied."""

from __future__ import annotations

from typing import Any

from case import MERGE, STRATEGIC, Case, Explained, apply, case, delete, get, patch, post, put, setup, taken_for_ours
from wire_bodies import (
    CONFIG_MAPS,
    CONTAINER,
    DEPLOYMENTS,
    LABELS,
    NODES,
    PODS,
    SELECTOR,
    SERVICES,
    Json,
    config_map,
    pod,
)

A = f"{CONFIG_MAPS}/a"
D = f"{DEPLOYMENTS}/a"


def applied(data: Json | None = None, **meta: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **meta}, "data": data or {"k": "1"}}


def deployment(replicas: int | None = 2, **container: Any) -> Json:
    spec: Json = {
        "selector": SELECTOR,
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER | container]}},
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


def service(*ports: Json) -> Json:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": list(ports)}}


MADE = setup("POST", CONFIG_MAPS, config_map())
LOOSE = setup("PATCH", A, {"metadata": {"managedFields": [{}]}}, type=MERGE)

CASES: list[Case] = [
    case("apply creates", apply(A, applied()), get(A)),
    case("apply the same again", apply(A, applied()), apply(A, applied()), get(A)),
    case("apply takes back what is left out", apply(A, applied({"k": "1", "l": "2"})), apply(A, applied({"k": "1"}))),
    case("apply adds", apply(A, applied()), apply(A, applied({"k": "1", "m": "3"}))),
    case("apply of another's value", apply(A, applied()), apply(A, applied({"k": "2"}), "bob"), get(A), error=True),
    case(
        "apply of two of another's values",
        apply(A, applied({"k": "1", "l": "1"})),
        apply(A, applied({"k": "2", "l": "2"}), "bob"),
        error=True,
    ),
    case(
        "apply of values of two others",
        apply(A, applied()),
        apply(A, applied({"l": "1"}), "bob"),
        apply(A, applied({"k": "2", "l": "2"}), "carol"),
        error=True,
    ),
    case("apply by force", apply(A, applied()), apply(A, applied({"k": "2"}), "bob", force=True), get(A), error=True),
    case("apply the same value as another", apply(A, applied()), apply(A, applied(), "bob"), get(A)),
    case("one of two owners leaves", apply(A, applied()), apply(A, applied(), "bob"), apply(A, applied({"x": "y"}))),
    case("apply over an update", MADE, apply(A, applied({"k": "9"})), error=True),
    case("apply over an update by force", MADE, apply(A, applied({"k": "9"}), force=True)),
    case("apply what an update wrote", MADE, apply(A, applied({"k": "v"}))),
    case(
        "an update over an apply", apply(A, applied()), patch(A, {"data": {"k": "2"}}), apply(A, applied()), error=True
    ),
    case(
        "an update of another field", apply(A, applied()), patch(A, {"data": {"l": "2"}}), apply(A, applied({"k": "3"}))
    ),
    case("an update that removes", apply(A, applied({"k": "1", "l": "2"})), patch(A, {"data": {"l": None}})),
    case(
        "two updaters",
        MADE,
        patch(f"{A}?fieldManager=one", {"data": {"a": "1"}}),
        patch(f"{A}?fieldManager=two", {"data": {"a": "2"}}),
    ),
    case("an updater writes the same", MADE, patch(f"{A}?fieldManager=one", {"data": {"k": "v"}})),
    case(
        "labels and annotations",
        apply(A, applied(labels={"a": "b"}, annotations={"c": "d"})),
        apply(A, applied(labels={"a": "b"})),
        patch(A, {"metadata": {"labels": {"x": "y"}}}),
    ),
    case(
        "finalizers are a set",
        apply(A, applied(finalizers=["example.com/a"])),
        apply(A, applied(finalizers=["example.com/b"]), "bob"),
        apply(A, applied()),
    ),
    case(
        "owners are a map",
        apply(
            A,
            applied(
                ownerReferences=[
                    {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "00000000-0000-4000-8000-000000000000"}
                ]
            ),
        ),
    ),
    case("apply a deployment", apply(D, deployment()), get(D)),
    case("apply a container's field away", apply(D, deployment(command=["x"])), apply(D, deployment())),
    case("apply another image", apply(D, deployment()), apply(D, deployment(image="y:2"), "bob"), error=True),
    case(
        "apply a second container",
        apply(D, deployment()),
        apply(
            D,
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "a"},
                "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s:1"}]}}},
            },
            "bob",
        ),
        get(D),
    ),
    case(
        "apply a second container and take it back",
        apply(D, deployment()),
        apply(
            D,
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "a"},
                "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s:1"}]}}},
            },
            "bob",
        ),
        apply(
            D,
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"paused": True}},
            "bob",
        ),
        get(D),
    ),
    case(
        "replicas handed over to a scaler",
        apply(D, deployment()),
        patch(f"{D}/scale?fieldManager=hpa", {"spec": {"replicas": 5}}),
        apply(D, deployment(None)),
        get(D),
    ),
    case(
        "replicas of a scaler in the way",
        apply(D, deployment()),
        patch(f"{D}/scale?fieldManager=hpa", {"spec": {"replicas": 5}}),
        apply(D, deployment(3)),
        error=True,
    ),
    case(
        "ports of a service by their keys",
        apply(f"{SERVICES}/a", service({"port": 80, "name": "http"})),
        apply(f"{SERVICES}/a", service({"port": 90, "name": "other"}), "bob"),
        get(f"{SERVICES}/a"),
    ),
    case(
        "env by name",
        apply(D, deployment(env=[{"name": "A", "value": "1"}])),
        apply(D, deployment(env=[{"name": "B", "value": "2"}])),
    ),
    case(
        "conditions by apply",
        setup("POST", NODES, {"metadata": {"name": "{ns}-n"}}),
        apply(
            f"{NODES}/{{ns}}-n/status",
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "{ns}-n"},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            },
        ),
    ),
    case(
        "status by apply, spec ignored",
        setup("POST", DEPLOYMENTS, deployment()),
        apply(f"{D}/status", deployment(7) | {"status": {"replicas": 1}}),
    ),
    case(
        "tolerations are one",
        apply(
            D,
            {
                **deployment(),
                "spec": {
                    **deployment()["spec"],
                    "template": {
                        "metadata": {"labels": LABELS},
                        "spec": {"containers": [CONTAINER], "tolerations": [{"key": "a", "operator": "Exists"}]},
                    },
                },
            },
        ),
    ),
    case("apply a pod", apply(f"{PODS}/a", {"apiVersion": "v1", "kind": "Pod", **pod()}), get(f"{PODS}/a"), pods=True),
    case("apply as a dry run", apply(f"{A}?dryRun=All", applied(), drop=("metadata.uid",)), get(A), error=True),
    case("apply with a stale version", MADE, apply(A, applied({"x": "y"}, resourceVersion="1")), error=True),
    case("apply with a version, of what is not there", apply(A, applied(resourceVersion="1"))),
    case("apply without a manager", patch(A, applied(), "application/apply-patch+yaml"), error=True),
    case("apply without a kind", apply(A, {"apiVersion": "v1", "metadata": {"name": "a"}}), error=True),
    case("apply without a version", apply(A, {"kind": "ConfigMap", "metadata": {"name": "a"}}), error=True),
    case(
        "apply of another kind", apply(A, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}), error=True
    ),
    case(
        "apply of another name",
        apply(A, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}),
        error=True,
    ),
    case("apply of another namespace", apply(A, applied(namespace="default")), error=True),
    case(
        "apply with managedFields",
        apply(A, applied(managedFields=[{"manager": "x", "operation": "Apply", "apiVersion": "v1"}])),
        error=True,
    ),
    case("apply of an unknown field", apply(A, {**applied(), "extra": 1}), error=True, explained=taken_for_ours()),
    case(
        "apply of a wrong type",
        apply(A, {**applied(), "data": {"k": 1}}),
        error=True,
        explained=(
            *taken_for_ours(),
            Explained("[0].body.message", "the real message is of its merge library, ours of the decoder"),
        ),
    ),
    case("apply what is no object", apply(A, "- a\n- b\n"), error=True),
    case(
        "apply what is no YAML",
        apply(A, "a: [b"),
        error=True,
        explained=(Explained("[0].body.message", "each server has the words of its own YAML parser"),),
    ),
    case("apply YAML", apply(A, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: '1'\n")),
    case("apply what is not valid", apply(A, applied(labels={"a": "not ok!"})), error=True),
    case(
        "apply with force that is no boolean",
        patch(f"{A}?fieldManager=a&force=perhaps", applied(), "application/apply-patch+yaml"),
        error=True,
    ),
    case("force without apply", MADE, patch(f"{A}?force=true", {"data": {"x": "y"}}), error=True),
    case("managedFields dropped", MADE, patch(A, {"metadata": {"managedFields": []}}), get(A)),
    case("managedFields dropped, then apply", MADE, LOOSE, apply(A, applied({"x": "y"})), get(A)),
    case("managedFields dropped, then update", MADE, LOOSE, patch(A, {"data": {"x": "y"}})),
    case(
        "a status update and its owner",
        setup("POST", DEPLOYMENTS, deployment()),
        patch(f"{D}/status?fieldManager=ctl", {"status": {"replicas": 1}}),
        patch(f"{D}/status?fieldManager=ctl", {"status": {"replicas": 2}}),
        patch(f"{D}?fieldManager=kubectl", {"spec": {"paused": True}}),
    ),
    case(
        "strategic patch and its owner",
        setup("POST", DEPLOYMENTS, deployment()),
        patch(
            f"{D}?fieldManager=kubectl",
            {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "z:3"}]}}}},
            STRATEGIC,
        ),
    ),
    case("PUT and its owner", MADE, put(f"{A}?fieldManager=me", config_map("a", other="1"))),
    case(
        "more than ten updaters",
        MADE,
        *(setup("PATCH", f"{A}?fieldManager=m{i:02}", {"data": {f"x{i}": "1"}}, type=MERGE) for i in range(12)),
        get(A),
    ),
    case("apply then delete then apply", apply(A, applied()), setup("DELETE", A), apply(A, applied({"k": "2"}), "bob")),
    case(
        "apply while it is being deleted",
        apply(A, applied(finalizers=["example.com/hold"])),
        delete(A),
        apply(A, applied({"k": "2"}, finalizers=["example.com/hold"])),
        apply(A, applied({"k": "2"})),
        get(A),
        error=True,
    ),
    case(
        "create with managedFields",
        post(
            CONFIG_MAPS,
            {
                **config_map(),
                "metadata": {
                    "name": "a",
                    "managedFields": [
                        {
                            "manager": "x",
                            "operation": "Update",
                            "apiVersion": "v1",
                            "fieldsType": "FieldsV1",
                            "fieldsV1": {"f:data": {"f:z": {}}},
                        }
                    ],
                },
            },
        ),
    ),
]
