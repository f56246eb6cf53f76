"""CustomResourceDefinitions and what they define, served as soon as they are there."""

from __future__ import annotations

from typing import Any

from case import (
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    TABLE,
    Call,
    Case,
    Events,
    Explained,
    Step,
    Watch,
    apply,
    case,
    delete,
    get,
    patch,
    post,
    put,
    setup,
)
from wire_bodies import CRDS, Json

GROUP = "{ns}.example.com"
THINGS = "/apis/{ns}.example.com/v1/namespaces/{ns}/things"
T = f"{THINGS}/a"
OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD = f"{CRDS}/things.{GROUP}"


def definition(scope: str = "Namespaced", versions: list[Json] | None = None, **version: Any) -> Json:
    first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": OPEN}, **version}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"things.{GROUP}"},
        "spec": {"group": GROUP, "scope": scope, "names": {"plural": "things", "singular": "thing", "kind": "Thing", "shortNames": ["th"]},
                 "versions": versions or [first]},
    }  # fmt: skip


def defined(**version: Any) -> tuple[Step, ...]:
    """There, and served: the real server needs a moment for it."""
    return (
        setup("POST", CRDS, definition(**version)),
        Call("GET", f"/apis/{GROUP}/v1", setup=True, until=True),
        Call("GET", THINGS, setup=True, until=True),
    )


def thing(name: str = "a", **rest: Any) -> Json:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": name}, **(rest or {"spec": {"size": 1}})}


SUBRESOURCES: Json = {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                                              "labelSelectorPath": ".status.selector"}}  # fmt: skip
COLUMNS: list[Json] = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Dotted", "type": "string", "jsonPath": ".metadata.annotations.example\\.com/x", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
WITH_SUBRESOURCES = defined(subresources=SUBRESOURCES)
SECOND = [
    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": OPEN}},
    {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": OPEN}},
]

CASES: list[Case] = [
    case("a definition is created", post(CRDS, definition())),
    case(
        "a definition is established",
        setup("POST", CRDS, definition()),
        Call("GET", f"/apis/{GROUP}/v1", setup=True, until=True),
        get(
            CRD, drop=("metadata.finalizers", "metadata.resourceVersion", "metadata.managedFields", "status.conditions")
        ),
    ),
    case("discovery of a definition", *defined(), get(f"/apis/{GROUP}/v1"), get(f"/apis/{GROUP}")),
    case("create and get", *defined(), post(THINGS, thing()), get(T)),
    case(
        "list",
        *defined(),
        setup("POST", THINGS, thing()),
        setup("POST", THINGS, thing("b")),
        get(THINGS),
        get(f"/apis/{GROUP}/v1/things"),
    ),
    case(
        "selectors",
        *defined(),
        setup("POST", THINGS, thing()),
        get(f"{THINGS}?fieldSelector=metadata.name=a"),
        get(f"{THINGS}?labelSelector=x"),
        get(f"{THINGS}?fieldSelector=spec.size=1"),
        error=True,
    ),
    case(
        "watch",
        *defined(),
        Watch(f"{THINGS}?watch=true"),
        setup("POST", THINGS, thing()),
        patch(T, {"spec": {"size": 2}}),
        delete(T),
        Events(3),
    ),
    case("created twice", *defined(), setup("POST", THINGS, thing()), post(THINGS, thing()), error=True),
    case("without kind and version", *defined(), post(THINGS, {"metadata": {"name": "a"}}), error=True),
    case("of another kind", *defined(), post(THINGS, thing() | {"kind": "Other"}), error=True),
    case(
        "of another version",
        *defined(),
        post(THINGS, thing() | {"apiVersion": f"{GROUP}/v9"}),
        error=True,
        explained=(
            Explained(
                "[0].headers.Warning",
                "the real server warns of fields that it did not look up in the version that is asked for",
            ),
        ),
    ),
    case("with a bad name", *defined(), post(THINGS, thing("A_b")), error=True),
    case("without a name", *defined(), post(THINGS, {**thing(), "metadata": {}}), error=True),
    case("with a generated name", *defined(), post(THINGS, {**thing(), "metadata": {"generateName": "t-"}})),
    case(
        "metadata of a wrong shape",
        *defined(),
        post(THINGS, {**thing(), "metadata": {"name": "a", "labels": {"x": 1}}}),
        error=True,
        explained=(Explained("[0].body.message", "each server has the words of its own decoder for custom metadata"),),
    ),
    case("a body that is a list", *defined(), post(THINGS, []), error=True),
    case(
        "what is empty stays",
        *defined(),
        post(THINGS, thing("a", spec={"a": "", "b": 0, "c": [], "d": {}, "e": False})),
    ),
    case("nulls go", *defined(), post(THINGS, thing("a", spec={"a": None, "b": {"c": None}}))),
    case(
        "merge patch",
        *defined(),
        setup("POST", THINGS, thing()),
        patch(T, {"spec": {"color": "red"}}),
        patch(T, {"spec": {"size": None}}),
    ),
    case(
        "JSON patch",
        *defined(),
        setup("POST", THINGS, thing()),
        patch(T, [{"op": "replace", "path": "/spec/size", "value": 5}], JSON_PATCH),
    ),
    case(
        "strategic patch",
        *defined(),
        setup("POST", THINGS, thing()),
        patch(T, {"spec": {"size": 2}}, STRATEGIC),
        error=True,
    ),
    case("apply", *defined(), apply(T, thing()), apply(T, thing("a", spec={"color": "red"})), get(T)),
    case(
        "apply of another's value",
        *defined(),
        apply(T, thing()),
        apply(T, thing("a", spec={"size": 2}), "bob"),
        error=True,
    ),
    case(
        "lists are one for their owners",
        *defined(),
        apply(T, thing("a", spec={"l": [1, 2]})),
        apply(T, thing("a", spec={"l": [1, 2, 3]}), "bob"),
        error=True,
    ),
    case(
        "PUT",
        *defined(),
        setup("POST", THINGS, thing(), save="a"),
        put(T, {**thing("a", spec={"size": 3}), "metadata": {"name": "a", "resourceVersion": "{a.version}"}}),
    ),
    case("PUT without a version", *defined(), setup("POST", THINGS, thing()), put(T, thing()), error=True),
    case(
        "PUT with a stale version",
        *defined(),
        setup("POST", THINGS, thing(), save="a"),
        setup("PATCH", T, {"spec": {"size": 9}}, type=MERGE),
        put(T, {**thing(), "metadata": {"name": "a", "resourceVersion": "{a.version}"}}),
        error=True,
    ),
    case(
        "generation",
        *defined(),
        post(THINGS, thing()),
        patch(T, {"spec": {"size": 2}}),
        patch(T, {"metadata": {"labels": {"x": "y"}}}),
        patch(T, {"status": {"ok": True}}),
    ),
    case(
        "generation with a status",
        *WITH_SUBRESOURCES,
        post(THINGS, thing()),
        patch(f"{T}/status", {"status": {"ok": True}}),
        patch(T, {"other": 1}),
    ),
    case("status on create", *WITH_SUBRESOURCES, post(THINGS, thing("a", spec={}, status={"ok": True}))),
    case(
        "status of its own",
        *WITH_SUBRESOURCES,
        setup("POST", THINGS, thing()),
        patch(f"{T}/status", {"spec": {"size": 9}, "status": {"ok": True}}),
        patch(T, {"status": {"ok": False}}),
        get(T),
    ),
    case(
        "labels by status",
        *WITH_SUBRESOURCES,
        setup("POST", THINGS, thing()),
        patch(f"{T}/status", {"metadata": {"labels": {"x": "y"}}, "status": {"ok": True}}),
    ),
    case("no status subresource", *defined(), setup("POST", THINGS, thing()), get(f"{T}/status"), error=True),
    case(
        "scale",
        *WITH_SUBRESOURCES,
        setup("POST", THINGS, thing("a", spec={"replicas": 2})),
        get(f"{T}/scale"),
        patch(f"{T}/scale", {"spec": {"replicas": 3}}),
        get(T),
    ),
    case(
        "scale without replicas",
        *WITH_SUBRESOURCES,
        setup("POST", THINGS, thing()),
        get(f"{T}/scale"),
        error=True,
        explained=(
            Explained(
                "[0].*",
                "a custom object without the scale's path: the real server answers 500, the embedded one shows none",
            ),
        ),
    ),
    case("no scale subresource", *defined(), setup("POST", THINGS, thing()), get(f"{T}/scale"), error=True),
    case(
        "a Table with columns",
        *defined(additionalPrinterColumns=COLUMNS),
        setup(
            "POST",
            THINGS,
            {
                **thing(),
                "metadata": {"name": "a", "annotations": {"example.com/x": "d"}},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            },
        ),
        get(THINGS, accept=TABLE, drop=("columnDefinitions.*.description",)),
    ),
    case(
        "a Table without columns",
        *defined(),
        setup("POST", THINGS, thing()),
        get(THINGS, accept=TABLE, drop=("columnDefinitions.*.description",)),
    ),
    case("delete", *defined(), setup("POST", THINGS, thing()), delete(T), get(T), error=True),
    case(
        "delete with a finalizer",
        *defined(),
        setup("POST", THINGS, {**thing(), "metadata": {"name": "a", "finalizers": ["example.com/x"]}}),
        delete(T),
        patch(T, {"metadata": {"finalizers": None}}),
        get(T),
        error=True,
    ),
    case(
        "a second version",
        setup("POST", CRDS, definition(versions=SECOND)),
        Call("GET", f"/apis/{GROUP}/v2", setup=True, until=True),
        Call("GET", f"/apis/{GROUP}/v2/namespaces/{{ns}}/things", setup=True, until=True),
        setup("POST", THINGS, thing()),
        get(f"/apis/{GROUP}/v2/namespaces/{{ns}}/things/a"),
        get(f"/apis/{GROUP}"),
    ),
    case(
        "a definition under another name",
        post(CRDS, {**definition(), "metadata": {"name": "other." + GROUP}}),
        error=True,
    ),
    case("a definition without a schema", post(CRDS, definition(schema=None)), error=True),
    case("a definition of no scope", post(CRDS, definition(scope="Galaxy")), error=True),
    case("a definition that is there", setup("POST", CRDS, definition()), post(CRDS, definition()), error=True),
    case(
        "a definition goes, and what it defined",
        *defined(),
        setup("POST", THINGS, thing()),
        setup("DELETE", CRD),
        Call("POST", CRDS, definition(), until=True, setup=True),
        Call("GET", THINGS, setup=True, until=True),
    ),
]
