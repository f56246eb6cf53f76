"""POST, PUT and PATCH: versions, preconditions, identity, the four kinds of patch, dry runs, generated names."""

from __future__ import annotations

from typing import Any

from case import JSON_PATCH, MERGE, STRATEGIC, Case, Explained, case, get, patch, post, put, setup, taken_for_ours
from wire_bodies import (
    CONFIG_MAPS,
    CONTAINER,
    DEPLOYMENTS,
    KINDS,
    LEASES,
    NODES,
    PDBS,
    PODS,
    SECRETS,
    SERVICES,
    Json,
    config_map,
    deployment,
    named,
    pdb,
    pod,
    service,
)

A = f"{CONFIG_MAPS}/a"
MADE = setup("POST", CONFIG_MAPS, config_map(), save="a")
POD = setup("POST", PODS, pod(), save="a")
DEPLOYED = setup("POST", DEPLOYMENTS, deployment(), save="a")


def meta(**fields: Any) -> Json:
    return {"metadata": {"name": "a", **fields}, "data": {"k": "v"}}


def json_patch(name: str, *operations: Json, error: bool = False) -> Case:
    return case(f"JSON patch: {name}", MADE, patch(A, list(operations), JSON_PATCH), get(A), error=error)


def strategic(
    name: str, body: Json, on: str = "deployment", error: bool = False, explained: tuple[Explained, ...] = ()
) -> Case:
    made, path = (DEPLOYED, f"{DEPLOYMENTS}/a") if on == "deployment" else (POD, f"{PODS}/a")
    steps = (made, patch(path, body, STRATEGIC), get(path))
    return case(f"strategic patch: {name}", *steps, error=error, pods=on == "pod", explained=explained)


def op(kind: str, path: str, value: Any = None, source: str = "") -> Json:
    found: Json = {"op": kind, "path": path}
    if kind in ("add", "replace", "test"):
        found["value"] = value
    return found | {"from": source} if source else found


TWO = [{"name": "main", "image": "x:1", "env": [{"name": "A", "value": "1"}]}, {"name": "side", "image": "y:1"}]
WITH_TWO = setup(
    "POST",
    DEPLOYMENTS,
    deployment(
        "two",
        template={
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": TWO, "tolerations": [{"key": "a", "operator": "Exists"}]},
        },
    ),
)
T = f"{DEPLOYMENTS}/two"


def on_two(name: str, spec: Json, error: bool = False) -> Case:
    body = {"spec": {"template": {"spec": spec}}}
    return case(f"strategic patch: {name}", WITH_TWO, patch(T, body, STRATEGIC), error=error)


PATCH_TEXT = (
    Explained("[0].body.message", "the real message repeats the whole patched object in the order of Go's fields"),
    Explained("[0].body.details.causes[0].message", "as the message"),
)

CREATES = [
    case("create without a name", post(CONFIG_MAPS, {"data": {"k": "v"}}), error=True),
    case("create with a generated name", post(CONFIG_MAPS, {"metadata": {"generateName": "run-"}})),
    case("create with name and generateName", post(CONFIG_MAPS, {"metadata": {"name": "a", "generateName": "run-"}})),
    case("create with a generated name that is no name", post(CONFIG_MAPS, {"metadata": {"generateName": "Run_"}}), error=True),
    case("create with a resourceVersion", post(CONFIG_MAPS, meta(resourceVersion="1")), error=True, explained=taken_for_ours()),
    case("create with what the server sets", post(CONFIG_MAPS, meta(
        uid="00000000-0000-4000-8000-000000000000", generation=7, creationTimestamp="2020-01-01T00:00:00Z", selfLink="/x",
        deletionTimestamp="2020-01-01T00:00:00Z"))),
    case("create in another namespace than the path's", post(CONFIG_MAPS, meta(namespace="default")), error=True),
    case("create in a namespace that is not there", post("/api/v1/namespaces/no-such/configmaps", config_map()), error=True),
    case("create a node with a namespace", post(NODES, {"metadata": {"name": "{ns}-x", "namespace": "{ns}"}}), error=True),
    case("create of another kind", post(CONFIG_MAPS, {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}), error=True),
    case("create of another version", post(CONFIG_MAPS, {"kind": "ConfigMap", "apiVersion": "v2", **config_map()}), error=True),
    case("create of an unknown kind", post(CONFIG_MAPS, {"kind": "Thing", "apiVersion": "example.com/v1", **config_map()}), error=True),
    case("create with a kind and no version", post(CONFIG_MAPS, {"kind": "ConfigMap", **config_map()})),
    case("create as a dry run", post(f"{CONFIG_MAPS}?dryRun=All", config_map(), drop=("metadata.uid",)), get(A), error=True),
    case("dryRun that is unknown", post(f"{CONFIG_MAPS}?dryRun=Some", config_map()), error=True),
    case("dryRun on a patch that is unknown", MADE, patch(f"{A}?dryRun=", {}), error=True),
    case("fieldValidation that is unknown", post(f"{CONFIG_MAPS}?fieldValidation=Hard", config_map()), error=True),
    case("create with a fieldManager", post(f"{CONFIG_MAPS}?fieldManager=me", config_map())),
    case("a fieldManager that is too long", post(f"{CONFIG_MAPS}?fieldManager={'x' * 129}", config_map()), error=True),
    case("create with labels and annotations", post(CONFIG_MAPS, meta(labels={"a": "b"}, annotations={"x/y": "z"}))),
    case("create with empty maps and nulls", post(CONFIG_MAPS, meta(labels={}, annotations=None, finalizers=[]))),
    case("create with owners", post(CONFIG_MAPS, meta(ownerReferences=[{
        "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "00000000-0000-4000-8000-000000000000", "controller": True}]))),
    case("create with a finalizer", post(CONFIG_MAPS, meta(finalizers=["example.com/hold"]))),
    case("secrets in clear and in base64", post(SECRETS, named("a", stringData={"k": "v"}, data={"k": "eA==", "l": "eQ=="}))),
    case("create on an item's path", post(A, config_map()), error=True),
    case("create a pod across namespaces", post("/api/v1/pods", pod()), error=True),
]  # fmt: skip

UPDATES = [
    case("update", MADE, put(A, config_map("a", k="2")), get(A)),
    case("update with the version that is there", MADE, put(A, meta(resourceVersion="{a.version}"))),
    case("update with a stale version", MADE, setup("PATCH", A, {"data": {"k": "9"}}, type=MERGE),
         put(A, meta(resourceVersion="{a.version}")), error=True),
    case("two updates from the same version", MADE, put(A, meta(resourceVersion="{a.version}", labels={"n": "1"})),
         put(A, meta(resourceVersion="{a.version}", labels={"n": "2"})), get(A), error=True),
    case("update with a version that is no number", MADE, put(A, meta(resourceVersion="abc")), error=True, explained=(Explained("[0].*", "the real server answers a version that is no number with 500, the embedded one with the conflict that it is"),)),
    case("update with a version of 0", MADE, put(A, meta(resourceVersion="0", labels={"n": "1"}))),
    case("update that changes nothing", MADE, put(A, config_map()), get(A)),
    case("update what is not there", put(A, config_map()), error=True),
    case("update with another name", MADE, put(A, config_map("b")), error=True),
    case("update without a name", MADE, put(A, {"data": {}}), error=True),
    case("update with another uid", MADE, put(A, meta(uid="00000000-0000-4000-8000-000000000000")), error=True),
    case("update with the same uid", MADE, put(A, meta(uid="{a.uid}", labels={"n": "1"}))),
    case("update in another namespace", MADE, put(A, meta(namespace="default")), error=True),
    case("update after a delete", MADE, setup("DELETE", A), put(A, meta(resourceVersion="{a.version}")), error=True),
    case("update after delete and create", MADE, setup("DELETE", A), setup("POST", CONFIG_MAPS, config_map()),
         put(A, meta(resourceVersion="{a.version}")), error=True),
    case("update after delete and create, by uid", MADE, setup("DELETE", A), setup("POST", CONFIG_MAPS, config_map()),
         put(A, meta(uid="{a.uid}")), error=True),
    case("update of labels only", MADE, put(A, {**config_map(), "metadata": {"name": "a", "labels": {"x": "y"}}})),
    case("update of what the server sets", MADE, put(A, meta(creationTimestamp="2020-01-01T00:00:00Z", generation=9,
         labels={"n": "1"}))),
    case("update of a lease without a version", setup("POST", LEASES, KINDS["Lease"][1]), put(f"{LEASES}/a", KINDS["Lease"][1]), error=True),
    case("a PUT that creates a lease", put(f"{LEASES}/a", KINDS["Lease"][1])),
    case("update of a budget without a version", setup("POST", PDBS, pdb()), put(f"{PDBS}/a", pdb()), error=True),
    case("update of an immutable ConfigMap", setup("POST", CONFIG_MAPS, {**config_map(), "immutable": True}),
         put(A, config_map("a", k="2")), error=True),
    case("update of a pod's image", POD, patch(f"{PODS}/a", {"spec": {"containers": [CONTAINER | {"image": "y:2"}]}}, STRATEGIC), pods=True),
    case("update of a pod's command", POD, patch(f"{PODS}/a", {"spec": {"containers": [CONTAINER | {"command": ["x"]}]}}, STRATEGIC),
         error=True, pods=True, explained=(Explained("[0].*message", "the real message ends with a diff of Go structs"),)),
    case("update of a selector", DEPLOYED, patch(f"{DEPLOYMENTS}/a", {"spec": {"selector": {"matchLabels": {"app": "b"}}}}), error=True),
    case("generation counts changes of the spec", DEPLOYED, patch(f"{DEPLOYMENTS}/a", {"spec": {"replicas": 2}}),
         patch(f"{DEPLOYMENTS}/a", {"metadata": {"labels": {"x": "y"}}}), patch(f"{DEPLOYMENTS}/a", {"metadata": {"annotations": {"x": "y"}}})),
    case("a service keeps its address", setup("POST", SERVICES, service()), put(f"{SERVICES}/a", service(ports=[{"port": 81}]))),
    case("a service's address may not change", setup("POST", SERVICES, service()),
         patch(f"{SERVICES}/a", {"spec": {"clusterIP": "10.96.0.77"}}), error=True),
    case("update that a dry run", MADE, put(f"{A}?dryRun=All", config_map("a", k="2")), get(A)),
]  # fmt: skip

PATCHES = [
    case("merge patch", MADE, patch(A, {"data": {"l": "2"}}), get(A)),
    case("merge patch with a null", MADE, patch(A, {"data": {"k": None}}), get(A)),
    case("merge patch that replaces a list", DEPLOYED, patch(f"{DEPLOYMENTS}/a", {"spec": {"template": {"spec": {"containers": [
         {"name": "other", "image": "z:1"}]}}}})),
    case("merge patch of what is not there", patch(A, {"data": {}}), error=True),
    case("merge patch with a stale version", MADE, setup("PATCH", A, {"data": {"k": "9"}}, type=MERGE),
         patch(A, {"metadata": {"resourceVersion": "{a.version}"}, "data": {"k": "8"}}), error=True),
    case("merge patch with the version that is there", MADE, patch(A, {"metadata": {"resourceVersion": "{a.version}"}, "data": {"k": "8"}})),
    case("merge patch with another uid", MADE, patch(A, {"metadata": {"uid": "00000000-0000-4000-8000-000000000000"}}), error=True),
    case("merge patch of the name", MADE, patch(A, {"metadata": {"name": "b"}}), error=True),
    case("merge patch of the namespace", MADE, patch(A, {"metadata": {"namespace": "default"}}), error=True),
    case("merge patch of the kind", MADE, patch(A, {"kind": "Secret"}), error=True, explained=PATCH_TEXT),
    case("merge patch that is a list", MADE, patch(A, []), error=True),
    case("merge patch that is no JSON", MADE, patch(A, "{"), error=True),
    case("merge patch that is empty", MADE, patch(A, {})),
    case("merge patch with a wrong type", MADE, patch(A, {"data": {"k": 1}}), error=True, explained=PATCH_TEXT),
    case("merge patch with a wrong shape", MADE, patch(A, {"data": "x"}), error=True, explained=PATCH_TEXT),
    case("merge patch as a dry run", MADE, patch(f"{A}?dryRun=All", {"data": {"k": "2"}}), get(A)),
    json_patch("add", op("add", "/data/l", "2")),
    json_patch("add a map", op("add", "/metadata/labels", {"a": "b"})),
    json_patch("remove", op("remove", "/data/k")),
    json_patch("remove what is not there", op("remove", "/data/none"), error=True),
    json_patch("replace", op("replace", "/data/k", "2")),
    json_patch("test that holds", op("test", "/data/k", "v"), op("replace", "/data/k", "2")),
    json_patch("test that fails", op("test", "/data/k", "w"), op("replace", "/data/k", "2"), error=True),
    json_patch("test of a version that is stale", op("test", "/metadata/resourceVersion", "1"), error=True),
    json_patch("move", op("move", "/data/m", source="/data/k")),
    json_patch("copy", op("copy", "/data/m", source="/data/k")),
    json_patch("add below what is not there", op("add", "/x/y/z", "1"), error=True),
    json_patch("an unknown operation", {"op": "jump", "path": "/data/k"}, error=True),
    json_patch("no path", {"op": "remove"}, error=True),
    case("JSON patch: not a list", MADE, patch(A, {"op": "add"}, JSON_PATCH), error=True),
    case("JSON patch: of a list's item", DEPLOYED, patch(f"{DEPLOYMENTS}/a", [op("replace", "/spec/template/spec/containers/0/image", "y:2")], JSON_PATCH)),
    case("JSON patch: beyond a list's end", DEPLOYED, patch(f"{DEPLOYMENTS}/a", [op("remove", "/spec/template/spec/containers/7")], JSON_PATCH), error=True),
    case("JSON patch: what is not there", patch(A, [op("add", "/data/k", "v")], JSON_PATCH), error=True),
    strategic("a container by name", {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "y:2"}]}}}}),
    strategic("a second container", {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "y:2"}]}}}}),
    strategic("a container without its name", {"spec": {"template": {"spec": {"containers": [{"image": "y:2"}]}}}}, error=True, explained=taken_for_ours()),
    strategic("strategy that retains keys", {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
    strategic("a map replaced", {"spec": {"template": {"metadata": {"labels": {"$patch": "replace", "app": "a", "x": "y"}}}}}),
    strategic("a directive that is unknown", {"spec": {"$patch": "explode"}}, error=True, explained=taken_for_ours()),
    strategic("finalizers are a set", {"metadata": {"finalizers": ["example.com/a"]}}, on="pod"),
    on_two("a container deleted", {"containers": [{"name": "side", "$patch": "delete"}]}),
    on_two("all containers replaced", {"containers": [{"$patch": "replace"}, {"name": "new", "image": "z:1"}]}),
    on_two("env by name", {"containers": [{"name": "main", "env": [{"name": "B", "value": "2"}]}]}),
    on_two("env deleted", {"containers": [{"name": "main", "env": [{"name": "A", "$patch": "delete"}]}]}),
    on_two("tolerations are replaced", {"tolerations": [{"key": "b", "operator": "Exists"}]}),
    on_two("an order of containers", {"$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
                                      "containers": [{"name": "side", "image": "y:3"}]}),
    case("strategic patch: labels", MADE, patch(A, {"metadata": {"labels": {"a": "b"}}}, STRATEGIC)),
    case("strategic patch: is a list", MADE, patch(A, [], STRATEGIC), error=True),
    case("a patch of an unknown type", MADE, patch(A, {}, "application/xml"), error=True),
    case("a patch as plain JSON", MADE, patch(A, {}, "application/json"), error=True),
    case("two patches meet", MADE, patch(A, {"data": {"a": "1"}}), patch(A, {"data": {"b": "2"}}), get(A)),
]  # fmt: skip

CASES = [*CREATES, *UPDATES, *PATCHES]
