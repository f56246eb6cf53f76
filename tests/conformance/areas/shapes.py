"""What is wrong with a request before anything is read: methods, media types, bodies; and field validation."""

from __future__ import annotations

from case import STRATEGIC, Call, Case, Explained, case, get, patch, post, put, setup
from wire_bodies import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS, Json, config_map, deployment, pod

A, D = f"{CONFIG_MAPS}/a", f"{DEPLOYMENTS}/a"
MADE = setup("POST", CONFIG_MAPS, config_map())
EXTRA: Json = {**config_map(), "extra": 1}


def body(name: str, text: str, explained: tuple[Explained, ...] = ()) -> Case:
    return case(f"a body that is {name}", post(CONFIG_MAPS, text), error=True, explained=explained)


def strict(name: str, made: Json, level: str, error: bool, path: str = PODS) -> Case:
    query = f"?fieldValidation={level}" if level else ""
    return case(f"{name}, validation {level or 'as it is'}", post(path + query, made), error=error, pods=path == PODS)


TWICE = '{"metadata":{"name":"a"},"data":{"k":"1","k":"2"}}'
TYPO = pod("a", restartPolicyy="Never", containers=[{"name": "main", "image": "x", "imagee": "y"}])

CASES: list[Case] = [
    case("PUT on a collection", put(CONFIG_MAPS, config_map()), error=True),
    case("PATCH on a collection", patch(CONFIG_MAPS, {}), error=True),
    case("POST on an item", MADE, post(A, config_map()), error=True),
    case("OPTIONS", Call("OPTIONS", A), error=True),

    case("DELETE of all pods everywhere", Call("DELETE", "/api/v1/pods"), error=True),
    case("POST to the version", post("/version", {}), error=True),
    case("POST to a group", post("/apis/apps/v1", {}), error=True),
    case("Accept that is not spoken", MADE, get(A, accept="application/xml"), error=True),
    case("Accept of anything", MADE, get(A, accept="*/*")),
    case("Accept of a part of anything", MADE, get(A, accept="application/*")),
    case("Accept of protobuf or JSON", MADE, get(A, accept="application/vnd.kubernetes.protobuf;q=0.1,application/json")),
    case("Accept of YAML", MADE, get(A, accept="application/yaml"), explained=(
         Explained("[0].*", "the embedded server answers in JSON only, whatever was asked for as well"),)),
    case("a Table of another version", MADE, get(A, accept="application/json;as=Table;v=v9;g=meta.k8s.io"), error=True),
    case("metadata only", MADE, get(A, accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")),
    case("a list of metadata only", MADE, get(f"{CONFIG_MAPS}?fieldSelector=metadata.name=a", accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")),
    case("a Table without objects", MADE, get(f"{A}?includeObject=None", accept="application/json;as=Table;v=v1;g=meta.k8s.io",
         drop=("columnDefinitions.*.description",))),
    case("a Table with whole objects", MADE, get(f"{A}?includeObject=Object", accept="application/json;as=Table;v=v1;g=meta.k8s.io",
         drop=("columnDefinitions.*.description",))),
    case("a Table with unknown objects", MADE, get(f"{A}?includeObject=Some", accept="application/json;as=Table;v=v1;g=meta.k8s.io"), error=True),
    case("a body as text", post(CONFIG_MAPS, config_map(), type="text/plain"), error=True),
    case("a body as XML", post(CONFIG_MAPS, "<a/>", type="application/xml"), error=True),
    case("a body as YAML", post(CONFIG_MAPS, "metadata:\n  name: a\ndata:\n  k: v\n", type="application/yaml")),
    case("a body as JSON with a charset", post(CONFIG_MAPS, config_map(), type="application/json; charset=utf-8")),
    case("a body that is empty", post(CONFIG_MAPS, ""), error=True),
    body("cut off", '{"metadata":{"name":"a"'),
    body("no JSON", "what?"),
    body("a list", "[]"),
    body("a number", "5"),
    body("a text", '"a"'),
    body("null", "null"),
    body("without metadata", "{}"),
    body("with metadata as a text", '{"metadata":"a"}'),
    body("with labels as a list", '{"metadata":{"name":"a","labels":["x"]}}'),
    body("with a label that is a number", '{"metadata":{"name":"a","labels":{"x":1}}}'),
    body("with data as a list", '{"metadata":{"name":"a"},"data":["x"]}'),
    body("with a name that is a number", '{"metadata":{"name":7}}'),
    body("with owners as a map", '{"metadata":{"name":"a","ownerReferences":{}}}'),
    case("an integer that is a text", post(DEPLOYMENTS, deployment("a", replicas="2")), error=True),
    case("an integer with a fraction", post(DEPLOYMENTS, deployment("a", replicas=1.5)), error=True),
    case("an integer that is too large", post(DEPLOYMENTS, deployment("a", replicas=2**40)), error=True),
    case("a boolean that is a text", post(DEPLOYMENTS, deployment("a", paused="yes")), error=True),
    case("a list that is a map", post(PODS, pod("a", containers={"a": 1})), error=True, pods=True),
    case("an object that is a list", post(PODS, {"metadata": {"name": "a"}, "spec": []}), error=True, pods=True),
    case("a quantity that is none", post(PODS, pod("a", containers=[{"name": "m", "image": "i", "resources": {"limits": {"cpu": "much"}}}])),
         error=True, pods=True),
    case("a quantity that is a boolean", post(PODS, pod("a", containers=[{"name": "m", "image": "i", "resources": {"limits": {"cpu": True}}}])),
         error=True, pods=True),
    case("a time that is none", post(CONFIG_MAPS, {"metadata": {"name": "a", "deletionTimestamp": "soon"}}), error=True),
    case("quantities in other forms", post(PODS, pod("a", containers=[{"name": "m", "image": "i", "resources": {"limits": {
         "cpu": 0.5, "memory": "2048Mi", "example.com/x": "1000m"}}}])), pods=True),
    strict("an unknown field", TYPO, "", False),
    strict("an unknown field", TYPO, "Warn", False),
    strict("an unknown field", TYPO, "Ignore", False),
    strict("an unknown field", TYPO, "Strict", True),
    strict("an unknown field at the root", EXTRA, "Strict", True, CONFIG_MAPS),
    strict("an unknown field at the root", EXTRA, "", False, CONFIG_MAPS),
    case("a field twice", post(CONFIG_MAPS, TWICE)),
    case("a field twice, strict", post(f"{CONFIG_MAPS}?fieldValidation=Strict", TWICE), error=True),
    case("a field twice, ignored", post(f"{CONFIG_MAPS}?fieldValidation=Ignore", TWICE)),
    case("PUT with an unknown field", MADE, put(f"{A}?fieldValidation=Strict", EXTRA), error=True),
    case("merge patch with an unknown field", MADE, patch(A, {"extra": 1})),
    case("merge patch with an unknown field, strict", MADE, patch(f"{A}?fieldValidation=Strict", {"extra": 1}), error=True, explained=(Explained("[0].body.*message", "the real message repeats the whole patched object in the order of Go's fields"),)),
    case("JSON patch with an unknown field, strict", MADE, patch(f"{A}?fieldValidation=Strict", [{"op": "add", "path": "/extra", "value": 1}],
         "application/json-patch+json"), error=True, explained=(Explained("[0].body.*message", "the real message repeats the whole patched object in the order of Go's fields"),)),
    case("strategic patch with an unknown field", setup("POST", DEPLOYMENTS, deployment()), patch(D, {"spec": {"extra": 1}}, STRATEGIC)),
    case("strategic patch with an unknown field, strict", setup("POST", DEPLOYMENTS, deployment()),
         patch(f"{D}?fieldValidation=Strict", {"spec": {"extra": 1}}, STRATEGIC), error=True),
    case("a namespace that is empty", get("/api/v1/namespaces//configmaps?fieldSelector=metadata.namespace={ns},metadata.name=none"), error=True),
    case("a slash at the end", MADE, get(f"{A}/")),
    case("a name in another case", MADE, get(f"{CONFIG_MAPS}/A"), error=True),
    case("a name that is escaped", MADE, get(f"{CONFIG_MAPS}/%61")),
    case("an access review", post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": {
         "verb": "get", "resource": "pods"}}}), explained=(
         Explained("[0].body.*", "the embedded server allows everything and says so; the real one asks RBAC"),)),
    case("an access review of nothing", post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}}), error=True),
    case("GET of an access review", get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"), error=True),
    case("a namespace and what it is born with", setup("POST", NAMESPACES, {"metadata": {"name": "{ns}-b"}}),
         get("/api/v1/namespaces/{ns}-b/serviceaccounts/default", until=True),
         get("/api/v1/namespaces/{ns}-b/configmaps/kube-root-ca.crt", until=True), get(f"{NAMESPACES}/{{ns}}-b")),
    case("the namespaces of a fresh cluster", *(get(f"{NAMESPACES}/{n}", drop=("metadata",)) for n in (
         "default", "kube-system", "kube-public", "kube-node-lease"))),
    case("the priorities of a fresh cluster", *(get(f"/apis/scheduling.k8s.io/v1/priorityclasses/{n}", drop=("metadata",)) for n in (
         "system-node-critical", "system-cluster-critical"))),
]  # fmt: skip
